// Runs as jobs of a real Ray 2.57: train, stop, resume, sweep, evaluate, a job that cannot start, and a queued job that
// is cancelled. One head serves all tests, because it needs up to a minute to start.
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Comparison } from '../../extension/cli/sweep/comparison';
import { RayJobs } from '../../extension/ray/ray-jobs';
import { isOver, type RayJob } from '../../extension/ray/ray-wire';
import {
  document,
  isAlive,
  killAll,
  leaseOf,
  ragen,
  readRun,
  results,
  statusOf,
  until,
  untilStep,
} from '../support/terminal';
import { stepOverrides } from '../support/tiny-overrides';
import { makeWorkspace, type Workspace } from '../support/workspace';
import { ray, RealRay } from './real-ray';

interface Summary {
  run: string;
  folder: string;
  state: string;
  steps: number;
  job?: string;
  error?: { message: string };
}

const isInstalled = existsSync(ray);
test.runIf(!isInstalled && process.env.RAGEN_REQUIRE_RAY === '1')('Ray is installed', () =>
  expect.fail('run node test/ray/install.mjs'),
);

let head: RealRay;
let jobs: RayJobs;
let workspace: Workspace;
beforeAll(async () => {
  if (!isInstalled) return;
  workspace = makeWorkspace();
  head = new RealRay();
  await head.start();
  jobs = new RayJobs({ url: head.url, headers: {} });
});
afterAll(async () => {
  if (!isInstalled) return;
  await head.stop();
  await killAll(workspace.folder);
  workspace.remove();
});

const words = ['--config-name', 'words'];
const long = ['trainer.total_training_steps=50000', 'trainer.val_before_train=false', 'trainer.test_freq=-1'];
const on = () => ['--on', head.url];
const run = (...args: string[]) => document<Summary>(workspace.folder, args);

/** Waits until Ray reports the end of a job. */
const ended = (id: string): Promise<RayJob> =>
  vi.waitUntil(
    async () => {
      const job = await jobs.get(id);
      return job && isOver(job) && job;
    },
    { timeout: 60_000, interval: 250 },
  );

test.runIf(isInstalled)('train, stop and resume', async () => {
  const { answer, stderr } = await run('train', ...words, ...long, ...on(), '--detach');
  expect(answer.error, stderr).toBeUndefined();
  const { run: id, folder, job } = answer;
  await untilStep(folder, 1);
  const { pid } = leaseOf(folder)!;
  const listed = await document<{ job: string; status: string; run: string }[]>(workspace.folder, ['jobs', ...on()]);
  expect(listed.answer).toMatchObject([{ job, status: 'RUNNING', run: id, state: 'running' }]);
  expect((await run('stop', id)).answer).toMatchObject({ state: 'stopped' });
  expect((await ended(job!)).status).toBe('SUCCEEDED');
  await until('the trainer is gone', () => !isAlive(pid));
  expect(readRun(folder).checkpoints).not.toEqual([]);

  const steps = statusOf(folder)!.step + 2;
  const resumed = await run('resume', id, `trainer.total_training_steps=${steps}`, ...on());
  expect(resumed.answer, resumed.stderr).toMatchObject({ state: 'finished', steps });
  const whole = await run('train', ...words, ...long, ...stepOverrides(steps));
  expect(results(folder)).toEqual(results(whole.answer.folder));
  const log = await ragen(workspace.folder, [
    'jobs',
    'logs',
    (await jobs.list()).find(({ submission_id }) => submission_id !== job)!.submission_id!,
    ...on(),
  ]);
  expect(log.stdout).toContain('in-group std');

  const evaluated = await run('eval', '--run', id, ...on());
  expect(evaluated.answer, evaluated.stderr).toMatchObject({ state: 'finished' });
});

test.runIf(isInstalled)('Ray’s own stop leaves a checkpoint and no process', async () => {
  const { answer } = await run('train', ...words, ...long, ...on(), '--detach');
  await untilStep(answer.folder, 1);
  const { pid } = leaseOf(answer.folder)!;
  const stopped = await document(workspace.folder, ['jobs', 'stop', answer.job!, '--now', ...on()]);
  expect(stopped.answer).toMatchObject({ status: 'STOPPED', stopped: true });
  await until('the trainer is gone', () => !isAlive(pid));
  expect(statusOf(answer.folder)?.state).toBe('stopped');
  expect(readRun(answer.folder).checkpoints).not.toEqual([]);
});

test.runIf(isInstalled)('a sweep runs its points as jobs', async () => {
  workspace.write(
    'rates.yaml',
    `config_name: words
overrides: [${stepOverrides(2).join(', ')}]
grid: {actor_rollout_ref.actor.optim.lr: [0.01, 0.001]}
`,
  );
  const { code, answer, stderr } = await document<Comparison>(workspace.folder, ['sweep', 'rates.yaml', ...on()]);
  expect(code, stderr).toBe(0);
  expect(answer.points.flatMap(({ runs }) => runs.map(({ state }) => state))).toEqual(['finished', 'finished']);
});

test.runIf(isInstalled)('a job that cannot start, and a job without resources', async () => {
  const missing = await run('train', ...words, ...stepOverrides(1), ...on(), '--remote-cli', '/nowhere/cli.cjs');
  expect(missing.answer.error?.message).toMatch(/did not start: Ray job .* ended \(FAILED.*Cannot find module/);
  const { answer } = await run('train', ...words, ...stepOverrides(1), ...on(), '--detach', 'workbench.job_gpus=1');
  expect(statusOf(answer.folder)).toMatchObject({ state: 'starting', phase: 'queued' });
  expect((await run('stop', answer.run, ...on())).answer).toMatchObject({ state: 'stopped' });
  expect((await jobs.get(answer.job!))?.status).toBe('PENDING'); // Ray ends a queued job only when it begins
  expect(statusOf(answer.folder)).toMatchObject({ state: 'stopped', phase: 'idle' });
});

test.runIf(isInstalled)('answers to mistakes are as in the peer of the unit tests', async () => {
  expect(await jobs.get('none')).toBeNull();
  expect(await jobs.logs('none')).toBeNull();
  const [known] = await jobs.list();
  const again = { entrypoint: 'true', submission_id: known.submission_id!, metadata: {}, runtime_env: {} };
  const none = { entrypoint_num_cpus: 0, entrypoint_num_gpus: 0, entrypoint_resources: {} };
  await expect(jobs.submit({ ...again, ...none })).rejects.toThrow('already exists');
  expect(await jobs.stop(known.submission_id!)).toBe(false);
  expect(await jobs.remove(known.submission_id!)).toBe(true);
});
