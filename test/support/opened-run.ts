// Opens a run in the test's own process and records its events, so that a test can change files while it trains.
import { expect } from 'vitest';
import { newestValid } from '../../extension/trainer/store/newest-checkpoint';
import type { RunEvent } from '../../extension/run-data/run-events';
import { makeRun } from '../../extension/cli/run-lifecycle/make-run';
import { train } from '../../extension/trainer/loop/train';
import { Journal } from '../../extension/trainer/run/journal';
import { openRun } from '../../extension/trainer/run/open-run';
import { RunControl } from '../../extension/trainer/run/run-control';
import type { RunFolder } from '../../extension/trainer/store/run-folder';
import { groupOverrides, stepOverrides } from './tiny-overrides';
import type { Workspace } from './workspace';

/**
 * Makes a run of the configuration `words`, stops it at its first checkpoint, and resumes it to its end. Returns its folder
 * and the resumed run, which is closed.
 */
export async function resumedHere(workspace: Workspace, overrides: readonly string[], steps: number) {
  const folder = await wordsRun(workspace, overrides, steps);
  const first = await openHere(folder, workspace);
  const stopped = first.next('checkpoint').then(() => first.run.control.stop());
  await train(first.run, first.state);
  await stopped;
  await first.close();
  expect(first.state.step).toBeLessThan(steps);
  const second = await openHere(folder, workspace);
  expect(await train(second.run, second.state)).toBe('finished');
  await second.close();
  return { folder, second };
}

/** Makes a run of the configuration `words` without validation. */
export async function wordsRun({ folder: workspace }: Workspace, overrides: readonly string[], steps = 2) {
  const short = [...stepOverrides(steps), 'trainer.test_freq=-1', ...groupOverrides('val', [1])];
  return (await makeRun({ configName: 'words', overrides: [...short, ...overrides], workspace })).folder;
}

/** Opens a run, at its newest checkpoint if it has one. `next` resolves to the next event of a kind after the call. */
export async function openHere(folder: RunFolder, workspace: Workspace) {
  const events: RunEvent[] = [];
  const listeners: ((event: RunEvent) => void)[] = [];
  const watchers = {
    status: () => undefined,
    appended: () => undefined,
    event: (event: RunEvent) => {
      events.push(event);
      for (const listener of listeners) listener(event);
    },
  };
  const status = {
    ...{ state: 'running' as const, step: 0, total_steps: 2, success: null, reward: null },
    ...{ tokens_per_s: null, eta_s: null, phase: 'idle', updated: new Date().toISOString() },
  };
  const journal = new Journal(folder, watchers, status, 0);
  const control = new RunControl(() => undefined);
  const checkpoint = (await newestValid(folder.path)).checkpoint;
  const { run, state } = await openRun({ folder, workspace: workspace.folder, checkpoint, control, journal });
  const next = (kind: RunEvent['kind']) =>
    new Promise<RunEvent>(resolve => listeners.push(event => event.kind === kind && resolve(event)));
  const close = async () => {
    await run.close();
    await journal.close();
  };
  return { run, state, events, next, close };
}
