// Two windows on one folder: what both start, control, report and read. Rules: docs/RELIABILITY.md.
import { rmSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EpisodeIndexReader } from '../../../../extension/vscode/run-files/episodes/episode-index-reader';
import { indexOfFile } from '../../../../extension/vscode/run-files/episodes/episode-scan';
import { RunReader } from '../../../../extension/vscode/run-files/run-reader';
import { TrainerClient } from '../../../../extension/vscode/processes/trainer-client';
import type { RunStatus } from '../../../../extension/run-data/run-status-file';
import {
  document,
  isAlive,
  killAll,
  leaseOf,
  readRun,
  runsOf,
  startDetached,
  statusOf,
  until,
  untilStep,
} from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const endless = ['trainer.total_training_steps=100000', 'trainer.save_freq=-1', 'trainer.test_freq=-1'];

/** A window that shows a run: its reader and its link to the trainer. */
function windowOn(run: string) {
  const reader = new RunReader(run);
  const received: RunStatus[] = [];
  const link = new TrainerClient('run', basename(run), () => reader.lease(), {
    status: status => (received.push(status), reader.report(status)),
    appended: () => undefined,
    event: () => undefined,
    problem: () => undefined,
  });
  return { reader, link, state: () => received.at(-1)?.state };
}

/** The episodes of a run as a window reads them while they are written. */
function episodesOf(run: string) {
  return new EpisodeIndexReader(run, null, {
    index: async (file, from) => indexOfFile(file, from),
    search: async () => true,
    end: () => undefined,
  });
}

/** Removes a folder that is being written to; returns whether it is completely gone. */
function isGone(folder: string): boolean {
  try {
    rmSync(folder, { recursive: true, force: true });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    return false;
  }
}

describe('two windows on one folder', () => {
  test('each start is a separate run, even with one name at the same moment; both train', async () => {
    const [one, other] = await Promise.all([
      startDetached(workspace.folder, endless),
      startDetached(workspace.folder, endless),
    ]);
    expect(one).not.toBe(other);
    expect(runsOf(workspace.folder).sort()).toEqual([one, other].sort());
    await Promise.all([untilStep(one, 1), untilStep(other, 1)]);
    const pids = [one, other].map(run => leaseOf(run)!.pid);
    expect(new Set(pids).size).toBe(2);

    // Deleting a run's folder ends only its own trainer.
    await until('the folder is gone', () => isGone(one));
    await until('its trainer has ended', () => !isAlive(pids[0]));
    expect(await new RunReader(one).refresh()).toBe(false);
    const { step } = statusOf(other)!;
    await untilStep(other, step + 1);
    process.kill(pids[1], 'SIGTERM');
    await until('the other is stopped', () => !leaseOf(other));
  });

  test('a run obeys both windows, reports to both, and both read it while it is written', async () => {
    const run = await startDetached(workspace.folder, endless);
    const [one, other] = [windowOn(run), windowOn(run)];
    const index = episodesOf(run);
    let [reading, reads, rows] = [true, 0, 0];
    const reader = (async () => {
      for (; reading; reads++, await sleep(5)) {
        await index.update();
        const ids = Array.from({ length: index.table.rows }, (_, row) => index.table.row(row));
        expect(ids.length).toBeGreaterThanOrEqual(rows);
        expect(new Set(ids.map(({ id }) => id)).size).toBe(ids.length);
        rows = ids.length;
        const newest = ids.at(-1);
        if (newest) expect((await index.episode(newest))?.id).toBe(newest.id);
      }
    })();
    try {
      await untilStep(run, 2);
      expect((await one.link.pause()).state).toBe('paused');
      await until('the other window hears of it', () => other.state() === 'paused');
      expect((await other.link.pause()).state).toBe('paused'); // a repeated command is harmless
      expect((await other.link.resume()).state).toBe('running');
      await until('the first hears of it', () => one.state() === 'running');
      // Of two changes of one setting the later one applies; the events contain both or only that one.
      const key = 'actor_rollout_ref.actor.optim.lr';
      await Promise.all([
        one.link.change({ [key]: 0.002 }),
        other.link.change({ 'actor_rollout_ref.rollout.temperature': 0.9 }),
      ]);
      await other.link.change({ [key]: 0.003 });
      await until('both settings hold', () => {
        const changed = readRun(run)
          .events.filter(({ kind }) => kind === 'setting')
          .map(({ data }) => data);
        return changed.some(data => data?.key === key && data.to === 0.003) && changed.some(data => data?.to === 0.9);
      });
      await Promise.all([one.link.stop(), other.link.stop()]);
      await until('the run is stopped', () => !leaseOf(run));
    } finally {
      reading = false;
      one.link.dispose();
      other.link.dispose();
      await reader;
    }
    const { episodes, status } = readRun(run);
    expect(status?.state).toBe('stopped');
    await index.update();
    expect(index.table.rows).toBe(episodes.length);
    expect(reads).toBeGreaterThan(5);

    // Both resume it at the same moment: one trainer starts, the other gets an error.
    const ends = await Promise.all(
      [0, 1].map(() =>
        document<{ error?: { message: string } }>(workspace.folder, ['resume', basename(run), '--detach']),
      ),
    );
    expect(ends.map(({ code }) => code).sort()).toEqual([0, 1]);
    expect(ends.find(({ code }) => code === 1)!.answer.error?.message).toContain(
      `run ${basename(run)} is already being trained by process ${leaseOf(run)!.pid}`,
    );
    await untilStep(run, status!.step + 1);
    process.kill(leaseOf(run)!.pid, 'SIGTERM');
    await until('the run is stopped again', () => !leaseOf(run));
  });
});
