// A sweep whose points are Ray jobs: concurrency, failures, an interrupt, and a second command that joins the jobs of
// the first instead of submitting them again.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Comparison } from '../../../../extension/cli/sweep/comparison';
import { RayPeer } from '../../../support/ray-peer';
import { document, killAll, ragen, statusOf, until, untilStep } from '../../../support/terminal';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';

let workspace: Workspace;
let peer: RayPeer;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => workspace.remove());
beforeEach(async () => (peer = await RayPeer.start()));
afterEach(async () => {
  await peer.close();
  await killAll(workspace.folder);
});

const file = (steps: number, values = '[0.01, 0.001]') => `config_name: words
overrides: [trainer.total_training_steps=${steps}, trainer.val_before_train=false, trainer.test_freq=${steps}]
grid:
  actor_rollout_ref.actor.optim.lr: ${values}
`;
const foldersOf = () => peer.submitted.map(({ metadata }) => metadata.ragen_folder);

/** Starts a sweep whose standard error can be awaited. */
function sweeping(...args: string[]) {
  const command = [join(root, 'dist/cli.cjs'), 'sweep', ...args, '--on', peer.url];
  const child = spawn(process.execPath, command, { cwd: workspace.folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = new Promise<number | null>(resolve => child.once('close', resolve));
  return { child, closed, said: (text: string) => until(text, () => stderr.includes(text)), stderr: () => stderr };
}

test('each point is a job, and the points are compared', { timeout: 120_000 }, async () => {
  workspace.write('rates.yaml', file(2));
  const { code, answer, stderr } = await document<Comparison>(workspace.folder, [
    'sweep',
    'rates.yaml',
    '--on',
    peer.url,
  ]);
  expect(code, stderr).toBe(0);
  expect(peer.submitted).toHaveLength(2);
  expect(answer.points.map(({ runs }) => runs.map(({ state, steps }) => [state, steps]))).toEqual([
    [['finished', 2]],
    [['finished', 2]],
  ]);
  const again = await ragen(workspace.folder, ['sweep', 'rates.yaml', '--on', peer.url]);
  expect(again.stderr).toContain('2 of 2 runs are finished already');
  expect(peer.submitted).toHaveLength(2);
});

test('the same command joins running and queued jobs', { timeout: 120_000 }, async () => {
  workspace.write('joined.yaml', file(5000));
  const cpus = 'workbench.job_cpus=2'; // one job at a time
  const first = sweeping('joined.yaml', cpus);
  await until('both jobs are submitted', () => peer.submitted.length === 2);
  await untilStep(foldersOf()[0], 1);
  first.child.kill('SIGKILL');
  await first.closed;

  const second = sweeping('joined.yaml', cpus);
  await second.said('[1/2] lr=0.01: joining');
  await second.said('[2/2] lr=0.001: joining');
  expect(peer.submitted).toHaveLength(2);
  second.child.kill('SIGINT');
  expect(await second.closed).toBe(1);
  expect(second.stderr()).toContain('2 of 2 runs are not finished');
  expect(foldersOf().map(folder => statusOf(folder)?.state)).toEqual(['stopped', 'stopped']);
  expect(peer.submitted).toHaveLength(2);
});

test('a failed job does not end the others, and its reason is printed', { timeout: 120_000 }, async () => {
  workspace.write('failed.yaml', file(2, '[0.02, 0.002]'));
  // The second job is refused after its run was created.
  let posts = 0;
  peer.fault = method =>
    method === 'POST' && ++posts === 2 ? { status: 500, text: 'RuntimeError: no agent' } : undefined;
  const failing = sweeping('failed.yaml', '--jobs', '1');
  expect(await failing.closed).toBe(1);
  expect(failing.stderr()).toMatch(/\[1\/2\] lr=0.02: finished after 2 steps/);
  expect(failing.stderr()).toMatch(/\[2\/2\] lr=0.002: ray: .*no agent/);
  peer.fault = () => undefined;
  const missing = sweeping('failed.yaml', '--remote-cli', '/nowhere/cli.cjs');
  expect(await missing.closed).toBe(1);
  expect(missing.stderr()).toMatch(/\[2\/2\] lr=0.002: .*did not start: Ray job .*Cannot find module/);
  const { code, stderr } = await ragen(workspace.folder, ['sweep', 'failed.yaml', '--on', peer.url]);
  expect(code, stderr).toBe(0);
});

test('a sweep on this machine does not start a run whose job is queued', { timeout: 120_000 }, async () => {
  workspace.write('mixed.yaml', file(2, '[0.03]'));
  const queueing = sweeping('mixed.yaml', 'workbench.job_cpus=3');
  await until('the job is submitted', () => peer.submitted.length === 1);
  queueing.child.kill('SIGKILL');
  await queueing.closed;
  const here = await ragen(workspace.folder, ['sweep', 'mixed.yaml', 'workbench.job_cpus=3']);
  expect(here.code).toBe(1);
  expect(here.stderr).toMatch(/is queued as Ray job .* stop it with ragen stop/);
});
