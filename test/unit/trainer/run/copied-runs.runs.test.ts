// A copy of a run folder beside the original, whose trainer is running. The copy is a separate run, and no command on
// the copy reaches the trainer.
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { TrainerClient } from '../../../../extension/vscode/processes/trainer-client';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { readLease } from '../../../../extension/trainer/store/held-lease';
import { document, killAll, leaseOf, runsOf, startDetached, statusOf, untilStep } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let original: string;
beforeAll(async () => {
  workspace = makeWorkspace();
  original = await startDetached(workspace.folder, ['trainer.total_training_steps=100000', 'trainer.test_freq=-1']);
  await untilStep(original, 1);
});
afterAll(async () => {
  for (const run of runsOf(workspace.folder)) if (run !== original) rmSync(run, { recursive: true });
  await killAll(workspace.folder);
  workspace.remove();
});

const ragen = (...args: string[]) =>
  document<{ error?: { message: string } } & { run: string; live: boolean; state: string }[]>(workspace.folder, args);
/**
 * Copies the run as `cp -r` does, without the files that the trainer may remove meanwhile; the copy's lease may have the
 * format of an earlier version.
 */
function copied(name: string, lease: object = {}): string {
  const copy = join(original, '..', name);
  cpSync(original, copy, { recursive: true, filter: source => !/\.sock$|\.tmp-|checkpoints|timeline/.test(source) });
  writeFileSync(join(copy, 'lease'), JSON.stringify({ ...leaseOf(original), ...lease }));
  return copy;
}
/** Asserts that the original continues to train. */
async function resumes(): Promise<void> {
  const { step } = statusOf(original)!;
  await untilStep(original, step + 2);
  expect(statusOf(original)!.state).toBe('running');
}

test('stop, pause and set refuse the copy, and its original continues', async () => {
  const id = basename(copied('copy'));
  for (const [command, ...more] of [['stop'], ['pause'], ['set', 'actor_rollout_ref.actor.entropy_coeff=0.5']]) {
    const { code, answer } = await ragen(command, id, ...more);
    expect([command, code, answer.error?.message]).toEqual([
      command,
      1,
      expect.stringMatching(/^run copy is not training/),
    ]);
  }
  await resumes();
  const { answer: rows } = await ragen('runs');
  expect(rows.map(({ run, live }) => [run, live]).sort()).toEqual(
    [
      [basename(original), true],
      ['copy', false],
    ].sort(),
  );
});

test('a copied lease without a folder name, as in earlier versions, does not connect the copy to the original’s trainer', async () => {
  const copy = copied('older', { folder: undefined });
  const { code, answer } = await ragen('pause', basename(copy));
  expect([code, answer.error?.message]).toEqual([1, expect.stringMatching(/^run older does not answer/)]);
  const problem = vi.fn();
  const ignore = () => undefined;
  const lease = readLease(copy)?.lease ?? undefined;
  expect(lease).toMatchObject({ pid: leaseOf(original)!.pid });
  const listener = { status: vi.fn(), appended: ignore, event: ignore, problem };
  const link = new TrainerClient('older', basename(copy), () => Promise.resolve(lease), listener);
  try {
    await vi.waitFor(
      () => expect(problem).toHaveBeenCalledWith(`the lease belongs to the trainer of run ${basename(original)}`),
      20_000,
    );
    expect(listener.status).not.toHaveBeenCalled();
    expect(link.connected).toBe(false);
  } finally {
    link.dispose();
  }
  await resumes();
});

test('a manifest’s id does not select another run or another folder', async () => {
  const copy = copied('renamed');
  const manifest = JSON.parse(readFileSync(join(copy, 'manifest.json'), 'utf8')) as object;
  for (const id of [basename(original), '../../../escaped']) {
    writeFileSync(join(copy, 'manifest.json'), JSON.stringify({ ...manifest, id }));
    expect(RunFolder.open(copy)).toMatchObject({ id: 'renamed', manifest: { id: 'renamed' } });
    expect(RunFolder.list(workspace.folder).map(run => run.id)).toContain('renamed');
    const { code, answer } = await ragen('stop', 'renamed');
    expect([code, answer.error?.message]).toEqual([1, expect.stringMatching(/^run renamed is not training/)]);
  }
  await resumes();
});

test('a link to a run folder is not a run of this workspace', async () => {
  const elsewhere = join(workspace.folder, 'elsewhere');
  mkdirSync(elsewhere);
  renameSync(copied('moved'), join(elsewhere, 'moved'));
  symlinkSync(join(elsewhere, 'moved'), join(original, '..', 'linked'));
  const { code, answer } = await ragen('stop', 'linked');
  expect([code, answer.error?.message]).toEqual([1, expect.stringMatching(/^store: there is no run linked in/)]);
  expect(RunFolder.list(workspace.folder).map(run => run.id)).not.toContain('linked');
});
