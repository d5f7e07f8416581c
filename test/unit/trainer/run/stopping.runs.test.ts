// A stop ends any activity of a run: the current step is aborted without a trace, and a resume repeats the step bit by
// bit. A stop does not wait for an environment that does not respond or does not finish loading.
import { existsSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { stop } from '../../../../extension/protocol/trainer-link';
import { RunStopped } from '../../../../extension/engine/run-stopped';
import { Journal } from '../../../../extension/trainer/run/journal';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import { openSession } from '../../../../extension/trainer/run/run-session';
import type { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { makeRun } from '../../../../extension/cli/run-lifecycle/make-run';
import { HeldEpisodes } from '../../../support/held-episodes';
import { document, killAll, leaseOf, readRun, results, startDetached, until } from '../../../support/terminal';
import { joinRun } from '../../../support/watcher';
import { makeWorkspace, wordsEnvironment } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';
import type { Watchers } from '../../../../extension/trainer/run/status-writer';

vi.mock('../../../../extension/node/installation', async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

const overrides = [
  ...[
    'algorithm.adv_estimator=gae',
    'actor_rollout_ref.actor.use_ref=true',
    'actor_rollout_ref.actor.use_kl_loss=true',
  ],
  ...['actor_rollout_ref.rollout.rollout_filter_value=1', 'actor_rollout_ref.rollout.rollout_filter_include_zero=true'],
  ...['trainer.total_training_steps=2', 'micro_batch_size_per_gpu=1', 'log_prob_micro_batch_size_per_gpu=1'],
  ...['trainer.log_group_rv_table=true', 'workbench.device=cpu'],
];
let workspace: Workspace;
let expected: ReturnType<typeof results>;

beforeAll(async () => {
  workspace = makeWorkspace();
  const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, [
    ...['train', '--config-name', 'words', ...overrides],
  ]);
  expect(code, stderr).toBe(0);
  expected = results(answer.folder);
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

async function newRun(
  overrides: readonly string[],
  watchers: Watchers = { status: () => undefined, appended: () => undefined, event: () => undefined },
): Promise<{ folder: RunFolder; journal: Journal }> {
  const { folder } = await makeRun({ configName: 'words', overrides, workspace: workspace.folder });
  const status = {
    ...{ state: 'running' as const, step: 0, total_steps: 2, success: null, reward: null },
    ...{ tokens_per_s: null, eta_s: null, phase: 'idle', updated: new Date().toISOString() },
  };
  return { folder, journal: new Journal(folder, watchers, status, 0) };
}

/**
 * Trains in this process and stops when the activity of step `step` matches `activity`. Returns all activities of the
 * run.
 */
async function stopped(step: number, activity: RegExp): Promise<{ folder: string; end: string; reported: string[] }> {
  const reported: string[] = [];
  const control = new RunControl(() => undefined);
  const watchers: Watchers = {
    ...{ appended: () => undefined, event: () => undefined },
    status: ({ step: done, phase, activity: at }) => {
      if (at === undefined) return;
      reported.push(`${done + 1} ${phase} ${at}`);
      if (done + 1 === step && activity.test(`${phase} ${at}`)) control.stop();
    },
  };
  const { folder, journal } = await newRun(overrides, watchers);
  const session = await openSession({ folder, workspace: workspace.folder, checkpoint: null, control, journal });
  try {
    return { folder: folder.path, end: await session.work(), reported };
  } finally {
    await session.close();
    await journal.close();
  }
}

test.each([
  ['the longest pass', 1, /longest pass/, []],
  ['the validation before training', 1, /^validation 0 of 8 episodes/, []],
  ['the first step, in old log-probs', 1, /update old log-probs/, [0]],
  ['a rollout', 2, /^rollout \d of 8 episodes, [1-9]/, [0, 1]],
  ['log-probs of the reference', 2, /reference log-probs: pass 2/, [0, 1]],
  ['values', 2, /values: pass 2/, [0, 1]],
  ["the critic's second mini-batch, after an optimizer step", 2, /critic, mini-batch 2 of 2: pass 1/, [0, 1]],
  ["the policy's second mini-batch, after optimizer steps of both", 2, /policy, mini-batch 2 of 2: pass 1/, [0, 1]],
  ['the last validation', 2, /^validation 0 of 8 episodes/, [0, 1]],
])('a run stopped in %s and resumed has the results of an uninterrupted run', async (_, step, activity, written) => {
  const { folder, end, reported } = await stopped(step, activity);
  expect(reported.some(line => activity.test(line.slice(2)))).toBe(true);
  expect(end).toBe('stopped');
  expect(readRun(folder).metrics.map(line => line.step)).toEqual(written);
  const { code, stderr } = await document(workspace.folder, ['resume', basename(folder)]);
  expect(code, stderr).toBe(0);
  expect(results(folder)).toEqual(expected);
});

test('a stop does not wait for an environment that does not respond', async () => {
  const held = new HeldEpisodes(workspace.folder).set('train');
  const run = await startDetached(workspace.folder, [...held.overrides, 'workbench.step_timeout_ms=3600000']);
  await held.reached('train');
  await (await joinRun(run)).link.sendRequest(stop, null);
  await until('the run ends', () => !leaseOf(run));
  expect(held.isSet('train')).toBe(true);
  expect(readRun(run)).toMatchObject({ status: { state: 'stopped', step: 0 }, metrics: [{ step: 0 }] });
});

test('a stop does not wait for an environment that does not finish loading', async () => {
  const [hang, reached] = ['hang', 'loading'].map(name => join(workspace.folder, name));
  const block = `if (existsSync(${JSON.stringify(hang)})) {
    writeFileSync(${JSON.stringify(reached)}, '');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }`;
  const code = wordsEnvironment().replace('export default', `${block}\nexport default`);
  workspace.write('environments/endless.ts', code);
  const control = new RunControl(() => undefined);
  const { folder, journal } = await newRun([...overrides, 'custom_envs.Words.env_type=environments/endless.ts']);
  writeFileSync(hang, ''); // the check before the run's creation has passed
  try {
    const opening = openSession({ folder, workspace: workspace.folder, checkpoint: null, control, journal });
    opening.catch(() => undefined);
    await until('the environment is loading', () => existsSync(reached));
    control.stop();
    await expect(opening).rejects.toThrow(RunStopped);
  } finally {
    await journal.close();
  }
});
