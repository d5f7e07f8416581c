// Runs as Ray jobs through the built CLI, against a peer that executes the jobs on this machine: train, stop, resume,
// evaluate, and everything that can go wrong before a trainer starts and while it trains.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { jobRecordSchema } from '../../../../extension/run-data/job-record';
import { RayPeer } from '../../../support/ray-peer';
import {
  document,
  killAll,
  leaseOf,
  ragen,
  readRun,
  results,
  runsOf,
  startDetached,
  statusOf,
  until,
  untilStep,
} from '../../../support/terminal';
import { stepOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';

interface Summary {
  run: string;
  folder: string;
  state: string;
  steps: number;
  job?: string;
  error?: { message: string };
}

let workspace: Workspace;
let peer: RayPeer;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => workspace.remove());
beforeEach(async () => (peer = await RayPeer.start()));
afterEach(async () => {
  await peer.close();
  await killAll(workspace.folder);
});

const words = ['--config-name', 'words'];
const on = () => ['--on', peer.url];
const run = (...args: string[]) => document<Summary>(workspace.folder, args);
const train = (...args: string[]) => run('train', ...words, ...stepOverrides(2), ...on(), ...args);
const long = ['trainer.total_training_steps=5000', 'trainer.val_before_train=false', 'trainer.test_freq=-1'];
const recordOf = (folder: string) => jobRecordSchema.parse(JSON.parse(readFileSync(join(folder, 'job.json'), 'utf8')));
const ended = (job: string) =>
  until(`the end of ${job}`, () => !['PENDING', 'RUNNING'].includes(peer.statusOf(job)!) && peer.statusOf(job));

/** Starts a long run as a job and returns its folder and job after its first step. */
async function running(...args: string[]) {
  const { answer, stderr } = await run('train', ...words, ...long, ...on(), '--detach', ...args);
  expect(answer.error, stderr).toBeUndefined();
  await untilStep(answer.folder, 1);
  return { folder: answer.folder, id: answer.run, job: answer.job! };
}

test('a run trains as a job, with the results of a local run, and its log has the step table', async () => {
  const { code, answer, stderr } = await train('workbench.job_cpus=2', 'workbench.job_resources={fast: 1}');
  expect(code, stderr).toBe(0);
  expect(answer).toMatchObject({ state: 'finished', steps: 2 });
  const [submitted] = peer.submitted;
  expect(submitted).toMatchObject({
    entrypoint_num_cpus: 2,
    entrypoint_num_gpus: 0,
    entrypoint_resources: { fast: 1 },
    runtime_env: { env_vars: { RAY_JOB_STOP_WAIT_TIME_S: '300' } },
    metadata: { ragen_run: answer.run, ragen_name: 'words' },
  });
  expect(stderr).toContain(`Run ${answer.run} is Ray job ${submitted.submission_id} of ${peer.url}`);
  expect(await ended(submitted.submission_id)).toBe('SUCCEEDED');
  expect(peer.logOf(submitted.submission_id)).toMatch(/ step +success[\s\S]*\n {4}2 /);
  expect(recordOf(answer.folder)).toMatchObject({ address: peer.url, id: submitted.submission_id });
  expect(recordOf(answer.folder).host).not.toBeUndefined();
  const local = await run(
    'train',
    ...words,
    ...stepOverrides(2),
    'workbench.job_cpus=2',
    'workbench.job_resources={fast: 1}',
  );
  expect(results(answer.folder)).toEqual(results(local.answer.folder));
});

test(
  'a job is stopped with a checkpoint and resumed to the result of an uninterrupted run',
  { timeout: 180_000 },
  async () => {
    const { folder, id, job } = await running();
    const stopped = await run('stop', id);
    expect(stopped.answer, stopped.stderr).toMatchObject({ run: id, state: 'stopped' });
    expect(await ended(job)).toBe('SUCCEEDED'); // the trainer ended by itself, Ray did not end it
    const steps = statusOf(folder)!.step + 2;
    const setting = `trainer.total_training_steps=${steps}`;

    const elsewhere = await run('resume', id, setting);
    expect(elsewhere.code).toBe(1);
    expect(elsewhere.answer.error?.message).toContain(`--on ${peer.url}, or on this machine with --on local`);
    const resumed = await run('resume', id, setting, ...on());
    expect(resumed.answer, resumed.stderr).toMatchObject({ run: id, state: 'finished', steps });
    expect(peer.submitted.map(({ metadata }) => metadata.ragen_run)).toEqual([id, id]);
    const whole = await run('train', ...words, ...long, ...stepOverrides(steps));
    expect(results(folder)).toEqual(results(whole.answer.folder));

    const more = `trainer.total_training_steps=${steps + 1}`;
    const longer = await run('resume', id, more, '--on', 'local');
    expect(longer.answer, longer.stderr).toMatchObject({ state: 'finished', steps: steps + 1 });
    expect(existsSync(join(folder, 'job.json'))).toBe(false);
    expect(peer.submitted).toHaveLength(2);
  },
);

test('a queued run is listed as starting, refuses a second trainer, and is cancelled', async () => {
  const first = await run('train', ...words, ...long, ...on(), '--detach', 'workbench.job_cpus=3');
  expect(first.code, first.stderr).toBe(0);
  const { run: id, folder, job } = first.answer;
  expect(peer.statusOf(job!)).toBe('PENDING');
  expect(statusOf(folder)).toMatchObject({ state: 'starting', phase: 'queued', step: 0, total_steps: 5000 });
  for (const place of [['--on', 'local'], on()])
    expect((await run('resume', id, ...place)).answer.error?.message).toMatch(/is queued as Ray job .* stop it with/);
  expect((await run('pause', id)).answer.error?.message).toContain('is not training');
  expect((await run('stop', id)).answer.error?.message).toContain(`--on ${peer.url} if you trust this address`);
  expect((await run('stop', id, ...on())).answer).toMatchObject({ state: 'stopped', step: 0 });
  const cancelled = statusOf(folder);
  expect(cancelled).toMatchObject({ state: 'stopped', phase: 'idle' });
  expect(peer.statusOf(job!)).toBe('PENDING'); // Ray ends a queued job only when it begins
  peer.resize(3);
  expect(['STOPPED', 'SUCCEEDED']).toContain(await ended(job!));
  expect(statusOf(folder)).toEqual(cancelled);
});

test('a cancelled job that begins later does not train, also if its run has another job', async () => {
  const first = await run('train', ...words, ...stepOverrides(2), ...on(), '--detach', 'workbench.job_cpus=3');
  const { run: id, folder, job } = first.answer;
  // The request to stop the job is lost, so nothing but the run folder can keep the job from training.
  peer.fault = (method, path) =>
    method === 'POST' && path.endsWith('/stop') ? { status: 200, text: '{"stopped":true}' } : undefined;
  expect((await document(workspace.folder, ['jobs', 'stop', job!, ...on()])).answer).toMatchObject({
    state: 'stopped',
  });
  const second = await run('resume', id, ...on(), '--detach');
  expect(second.answer.job).not.toBe(job);
  peer.resize(6);
  expect(await ended(job!)).toBe('SUCCEEDED');
  expect(peer.logOf(job!)).toContain('no longer waits for this job');
  expect(await ended(second.answer.job!)).toBe('SUCCEEDED');
  expect(statusOf(folder)).toMatchObject({ state: 'finished', step: 2 });
});

test('an interrupt cancels a queued job', async () => {
  const args = ['train', ...words, ...long, 'workbench.job_cpus=3', ...on(), '--json'];
  const child = spawn(process.execPath, [join(root, 'dist/cli.cjs'), ...args], { cwd: workspace.folder });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = new Promise<number | null>(resolve => child.once('close', resolve));
  await until('the job is queued', () => stderr.includes('is queued until resources are free'));
  child.kill('SIGINT');
  expect(await closed).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ state: 'stopped', steps: 0 });
});

test('a job that cannot start the CLI fails its run with the last lines of the log', async () => {
  const { code, answer, stderr } = await train('--remote-cli', '/nowhere/cli.cjs');
  expect(code).toBe(1);
  expect(answer.state).toBe('failed');
  expect(answer.error?.message).toMatch(/did not start: Ray job .* ended \(FAILED, exit code 1.*Cannot find module/);
  expect(stderr).toContain(answer.error?.message);
  expect(statusOf(answer.folder)).toMatchObject({ state: 'failed', error: answer.error?.message });
});

test(
  'a job that is killed while it trains is reported with Ray’s reason, and resumes',
  { timeout: 120_000 },
  async () => {
    const { folder, id, job } = await running();
    const following = run('resume', id, ...on());
    expect((await following).answer.error?.message).toContain('is already being trained');
    peer.killJob(job);
    expect(await ended(job)).toBe('FAILED');
    const [listed] = (await document<{ state: string }[]>(workspace.folder, ['runs'])).answer;
    expect(listed.state).toBe('interrupted');
    const { answer } = await run('resume', id, 'trainer.total_training_steps=1', ...on(), '--detach');
    expect(answer.job).not.toBe(job);
    expect(peer.submitted.at(-1)!.entrypoint).toMatch(/ --resume --set trainer\.total_training_steps=1$/);
    await ended(answer.job!);
    expect(statusOf(folder)?.error ?? '').not.toContain('did not start');
  },
);

test('the command that follows a killed job prints the reason', async () => {
  const args = ['train', ...words, ...long, ...on()];
  const following = ragen(workspace.folder, args);
  await until('the job is submitted', () => peer.submitted.length > 0);
  const [{ submission_id, metadata }] = peer.submitted;
  await untilStep(metadata.ragen_folder, 1);
  peer.killJob(submission_id);
  const { code, stderr } = await following;
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /Ray job \S+ ended \(FAILED.*; the last lines of its log are:\n[\s\S]*resume it with ragen resume/,
  );
});

test('Ray’s own stop leaves a checkpoint too', async () => {
  const { folder, id, job } = await running();
  const stopped = await document(workspace.folder, ['jobs', 'stop', job, '--now', ...on()]);
  expect(stopped.answer, stopped.stderr).toMatchObject({ job, run: id, status: 'STOPPED', stopped: true });
  expect(statusOf(folder)?.state).toBe('stopped');
  expect(readRun(folder).checkpoints).not.toEqual([]);
  expect(leaseOf(folder)).toBeNull();
});

test('jobs are listed with their runs, print their logs, and stop by their trainers', async () => {
  const { id, job, folder } = await running();
  const foreign = await fetchJob('true');
  const listed = await document<Record<string, unknown>[]>(workspace.folder, ['jobs', ...on()]);
  expect(listed.answer, listed.stderr).toMatchObject([
    { job, status: 'RUNNING', run: id, name: 'words', state: 'running', folder, node: recordOf(folder).host },
  ]);
  expect(peer.statusOf(foreign)).not.toBeUndefined();
  const table = await ragen(workspace.folder, ['jobs', 'list', ...on()]);
  expect(table.stdout).toMatch(/^job +status +run +node +age\nragen-\S+ +RUNNING +running, step \d+ +\S+ +0 m\n$/);
  const empty = makeWorkspace();
  try {
    const other = await ragen(empty.folder, ['jobs', ...on()]);
    expect(other.stdout).toContain(`${id} (in another workspace)`);
  } finally {
    empty.remove();
  }
  expect((await ragen(workspace.folder, ['jobs', 'logs', job, ...on()])).stdout).toContain('in-group std');
  const stopped = await document(workspace.folder, ['jobs', 'stop', job, ...on()]);
  expect(stopped.answer, stopped.stderr).toMatchObject({ job, run: id, state: 'stopped' });
  expect(await ended(job)).toBe('SUCCEEDED');
  const unknown = await ragen(workspace.folder, ['jobs', 'logs', 'none', ...on()]);
  expect(unknown.stderr).toMatch(/^ray: http\S+ has no job "none": see ragen jobs/);
});

/** Submits a job that is not a run. */
async function fetchJob(entrypoint: string): Promise<string> {
  const { RayJobs } = await import('../../../../extension/ray/ray-jobs');
  const submission_id = 'someone-elses';
  const empty = { metadata: {}, runtime_env: {}, entrypoint_resources: {} };
  const none = { entrypoint_num_cpus: 0, entrypoint_num_gpus: 0 };
  await new RayJobs({ url: peer.url, headers: {} }).submit({ entrypoint, submission_id, ...empty, ...none });
  return submission_id;
}

test('an evaluation runs as a job', async () => {
  const trained = await run('train', ...words, ...stepOverrides(1));
  const { code, answer, stderr } = await document<Summary & { evaluation?: { tags: Record<string, unknown> } }>(
    workspace.folder,
    [...['eval', '--run', trained.answer.run], ...on()],
  );
  expect(code, stderr).toBe(0);
  expect(answer.state).toBe('finished');
  expect(Object.keys(answer.evaluation?.tags ?? {})).toEqual(['Words']);
  expect(peer.submitted).toHaveLength(1);
});

test('the job receives only the variables that are passed by name', { timeout: 120_000 }, async () => {
  process.env.MY_SERVICE_TOKEN = 'tok-55aa77bb99';
  try {
    await train('--pass-env', 'MY_SERVICE_TOKEN');
    await train();
  } finally {
    delete process.env.MY_SERVICE_TOKEN;
  }
  const [passed, plain] = peer.submitted;
  expect(passed.runtime_env).toMatchObject({ env_vars: { MY_SERVICE_TOKEN: 'tok-55aa77bb99' } });
  expect(JSON.stringify(plain)).not.toContain('tok-55aa77bb99');
  const unset = await train('--pass-env', 'NOT_SET_ANYWHERE');
  expect(unset.answer.error?.message).toContain('--pass-env NOT_SET_ANYWHERE: the environment variable is not set');
});

test('an unreachable cluster is reported before a run folder exists', async () => {
  const empty = makeWorkspace();
  try {
    const { url } = peer;
    await peer.close();
    const { code, answer } = await document<Summary>(empty.folder, ['train', ...words, '--on', url]);
    expect(code).toBe(1);
    expect(answer.error?.message).toMatch(/cannot be reached \(ECONNREFUSED\)/);
    expect(runsOf(empty.folder)).toEqual([]);
  } finally {
    empty.remove();
    peer = await RayPeer.start();
  }
});

test('a refused job fails a new run and leaves an earlier state as it was', async () => {
  const trained = await run('train', ...words, ...stepOverrides(1));
  const before = statusOf(trained.answer.folder);
  peer.fault = method => (method === 'POST' ? { status: 500, text: 'RuntimeError: no agent' } : undefined);
  const { answer } = await train();
  expect(answer).toMatchObject({ state: 'failed', error: { message: expect.stringContaining('no agent') as string } });
  const resumed = await run('resume', trained.answer.run, 'trainer.total_training_steps=2', ...on());
  expect(resumed.answer.error?.message).toContain('no agent');
  expect(statusOf(trained.answer.folder)).toEqual(before);
});

test('a job record of someone else is not contacted', async () => {
  const other = await RayPeer.start();
  try {
    const local = await startDetached(workspace.folder, long);
    await ragen(workspace.folder, ['stop', basename(local)]);
    const record = { schema: 1, address: other.url, id: 'x', submitted: new Date().toISOString() };
    workspace.write(`.ragen/runs/${basename(local)}/job.json`, JSON.stringify(record));
    const refused = await run('resume', basename(local));
    expect(refused.answer.error?.message).toContain(`resume it there with --on ${other.url}`);
    const { answer, stderr } = await run('resume', basename(local), ...on(), '--detach');
    expect(answer.error, stderr).toBeUndefined();
    expect(recordOf(local).address).toBe(peer.url);
    expect(other.requests).toEqual([]);
  } finally {
    await other.close();
  }
});
