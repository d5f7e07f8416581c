// Equal seeds and configurations yield equal metrics, episodes and weights: in a second run, after kills at several
// points, after a stop, a pause, and the death of the environment process. The environments pause the run at the exact
// point under test.
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pause, resume, stop } from '../../../../extension/protocol/trainer-link';
import { HeldEpisodes } from '../../../support/held-episodes';
import {
  childrenOf,
  document,
  isAlive,
  kill,
  killAll,
  leaseOf,
  readRun,
  results,
  startDetached,
  statusOf,
  until,
} from '../../../support/terminal';
import { scalarSteps } from '../../../support/events-in';
import { joinRun } from '../../../support/watcher';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let reference: string;
let expected: ReturnType<typeof results>;

beforeAll(async () => {
  workspace = makeWorkspace();
  const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, [
    'train',
    '--config-name',
    'words',
  ]);
  expect(code, stderr).toBe(0);
  reference = answer.folder;
  expected = results(reference);
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const ended = (run: string): Promise<boolean> => until('the run ends', () => !leaseOf(run));

async function resumeDetached(run: string): Promise<void> {
  const { code, stderr } = await document(workspace.folder, ['resume', basename(run), '--detach']);
  expect(code, stderr).toBe(0);
}

function expectSame(run: string): void {
  const { metrics, status } = readRun(run);
  expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4]);
  expect(scalarSteps(run)).toEqual([0, 1, 2, 3, 4]);
  expect(status).toMatchObject({ state: 'finished', step: 4 });
  expect(results(run)).toEqual(expected);
}

test('the test run is informative: rewards differ, the policy changes, and validations have scores', () => {
  const trained = expected.metrics.filter(({ step }) => Number(step) > 0);
  expect(trained.every(line => Number(line['rollout/in_group_reward_std']) > 0)).toBe(true);
  expect(trained.every(line => Number(line['actor/grad_norm']) > 0)).toBe(true);
  expect(new Set(trained.map(line => line['actor/entropy'])).size).toBe(4);
  const validated = expected.metrics.flatMap(line => line['val-env/charts/avg_episode_return'] ?? []);
  expect(validated.length).toBe(3);
  expect(new Set(validated).size).toBeGreaterThan(1);
});

test('every rollout calls the environment in its first turn, so that the environment can pause it there', () => {
  const firsts = new Set(
    readRun(reference).episodes.flatMap(({ mode, step, turns }) =>
      turns[0].executed.length > 0 ? `${mode} ${step}` : [],
    ),
  );
  expect([...firsts].sort()).toEqual(['train 1', 'train 2', 'train 3', 'train 4', 'val 0', 'val 2', 'val 4']);
});

test('two runs are identical', async () => {
  const run = await startDetached(workspace.folder);
  await ended(run);
  expectSame(run);
});

describe('an interrupted run', () => {
  test('is identical after kills: before the first line, before the first checkpoint, and in a step after one', async () => {
    const holds = new HeldEpisodes(workspace.folder).set('val');
    const run = await startDetached(workspace.folder, [...holds.overrides, 'trainer.save_freq=2']);
    await holds.reached('val');
    const environments = childrenOf(leaseOf(run)!.pid);
    await kill(run);
    await until('the environments are gone with the trainer', () => !environments.some(isAlive));

    holds.release('val').set('train');
    await resumeDetached(run);
    await holds.reached('train');
    await kill(run);
    expect(readRun(run)).toMatchObject({ metrics: [{ step: 0 }], checkpoints: [] });

    holds.release('train').set('val');
    await resumeDetached(run);
    await holds.reached('val');
    await holds.swap('val', 'train');
    await holds.swap('train', 'val');
    expect(readRun(run)).toMatchObject({ metrics: [{ step: 0 }, { step: 1 }], checkpoints: [] });
    await holds.swap('val', 'train');
    await until('the disk says so', () => statusOf(run)?.phase === 'rollout' && statusOf(run)?.step === 2);
    await kill(run);
    expect(readRun(run).checkpoints).toEqual(['step-000002']);

    holds.release('train');
    await resumeDetached(run);
    await ended(run);
    expectSame(run);
    expect(readRun(run).events.map(({ kind, message }) => [kind, message])).toContainEqual([
      'resume',
      'resumed from checkpoints/step-000002',
    ]);
  });

  test('is identical after a stop in a rollout, which is discarded, and after a stop in a validation, which is repeated', async () => {
    const holds = new HeldEpisodes(workspace.folder).set('val');
    const run = await startDetached(workspace.folder, holds.overrides);
    await holds.reached('val');
    await holds.swap('val', 'train');
    await holds.swap('train', 'val');
    const watcher = await joinRun(run);
    expect((await watcher.link.sendRequest(stop, null)).state).toBe('stopping');
    holds.release('val');
    await ended(run);
    expect(readRun(run)).toMatchObject({
      status: { state: 'stopped', step: 2 },
      metrics: [{ step: 0 }, { step: 1 }],
      checkpoints: ['step-000002'],
    });

    holds.set('train');
    await resumeDetached(run);
    await holds.reached('train');
    await (await joinRun(run)).link.sendRequest(stop, null);
    holds.release('train');
    await ended(run);
    expect(readRun(run)).toMatchObject({ status: { state: 'stopped', step: 2 }, checkpoints: ['step-000002'] });
    expect(readRun(run).metrics.length).toBe(3);

    await resumeDetached(run);
    await ended(run);
    expectSame(run);
  });

  test('is identical after a pause, which is answered immediately and persists, and after the death of the environment process', async () => {
    const holds = new HeldEpisodes(workspace.folder).set('train');
    const run = await startDetached(workspace.folder, holds.overrides);
    await holds.reached('train');
    const watcher = await joinRun(run);
    const answer = await watcher.link.sendRequest(pause, null); // although the rollout is paused
    expect(answer.state).toBe('paused');
    for (const child of childrenOf(leaseOf(run)!.pid)) process.kill(child, 'SIGKILL');
    holds.release('train');
    await until('the disk says so', () => statusOf(run)?.state === 'paused');
    // eslint-disable-next-line no-restricted-syntax -- what must not happen has no event; a step takes far less
    await sleep(700);
    expect(readRun(run).metrics.length).toBe(1);
    expect((await watcher.link.sendRequest(resume, null)).state).toBe('running');
    await ended(run);
    expectSame(run);
    expect(readRun(run).events.flatMap(({ kind, message }) => (kind === 'state' ? message : []))).toEqual([
      'running',
      'paused',
      'running',
      'finished',
    ]);
  });
});
