// `ragen sweep` with real runs: a killed sweep goes on where it was, failed runs are tried again, points are stopped
// early, and another process can stop the sweep. `sweep.json` shows each of these states.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Comparison } from '../../../../extension/cli/sweep/comparison';
import { isRunnerAlive } from '../../../../extension/node/sweep-runner';
import { sweepFileSchema, type SweepFile } from '../../../../extension/run-data/sweep-file';
import { document, kill, killAll, ragen, runsOf, statusOf, until } from '../../../support/terminal';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const indexFile = (name: string): string => join(workspace.folder, '.ragen/sweeps', name, 'sweep.json');
const indexOf = (name: string): SweepFile => sweepFileSchema.parse(JSON.parse(readFileSync(indexFile(name), 'utf8')));
const folderOf = (run: string): string => join(workspace.folder, '.ragen/runs', run);
const held = (): string[] => [
  `custom_envs.Words.env_config.hold=${workspace.folder}/hold`,
  'workbench.step_timeout_ms=60000',
];

/** Starts a sweep; `closed` resolves to its exit code. */
function start(...args: string[]) {
  const command = [join(root, 'dist/cli.cjs'), 'sweep', ...args];
  const child = spawn(process.execPath, command, { cwd: workspace.folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = new Promise<number | null>(resolve => child.once('close', resolve));
  return { child, closed, stderr: () => stderr };
}

/** Waits until `count` runs of a sweep train, and returns them. */
const untilRunning = (name: string, count: number): Promise<string[]> =>
  until(`${count} runs are served`, () => {
    if (!existsSync(indexFile(name))) return false;
    const runs = indexOf(name).members.flatMap(({ run }) => (run === null ? [] : folderOf(run)));
    const running = runs.filter(run => statusOf(run)?.state === 'running');
    return running.length === count && running;
  });

test('a killed sweep goes on: it joins, resumes and starts runs', { timeout: 120_000 }, async () => {
  workspace.write(
    'killed.yaml',
    `config_name: words
overrides: [trainer.total_training_steps=2, trainer.val_before_train=false, trainer.test_freq=2]
grid: {actor_rollout_ref.actor.optim.lr: [0.01, 0.001, 0.003]}
`,
  );
  const hold = workspace.write('hold.train', '');
  const args = ['killed.yaml', '--jobs', '2', ...held()];
  const first = start(...args);
  const [joined, resumed] = await untilRunning('killed', 2);
  const before = indexOf('killed');
  expect(isRunnerAlive(before.runner)).toBe(true);
  expect(before).toMatchObject({ jobs: 2, retries: 1, halving: null, overrides: held() });
  expect(before.members.map(({ point, run, attempts }) => [point, run !== null, attempts])).toEqual([
    [0, true, 1],
    [1, true, 1],
    [2, false, 0],
  ]);
  const second = await ragen(workspace.folder, ['sweep', ...args]);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain(`sweep killed: process ${first.child.pid} runs this sweep already: `);

  first.child.kill('SIGKILL');
  await first.closed;
  await kill(resumed);
  expect(isRunnerAlive(indexOf('killed').runner)).toBe(false);
  const again = start(...args);
  await until('the sweep joins the living run', () => again.stderr().includes(': joining '));
  rmSync(hold);
  expect(await again.closed, again.stderr()).toBe(0);
  for (const verb of ['joining', 'resuming', 'starting']) expect(again.stderr().split(`: ${verb} `)).toHaveLength(2);
  const after = indexOf('killed');
  expect(after.runner).toBeNull();
  expect(after.members.map(({ run, attempts }) => [folderOf(run!), attempts])).toEqual([
    [joined, 1],
    [resumed, 2],
    [expect.any(String), 1],
  ]);
  expect(after.members.map(({ run }) => statusOf(folderOf(run!)))).toEqual(
    Array(3).fill(expect.objectContaining({ state: 'finished', step: 2 })),
  );
});

test('a run whose trainer dies is tried again, at most as often as asked', { timeout: 120_000 }, async () => {
  workspace.write(
    'again.yaml',
    'config_name: words\noverrides: [trainer.total_training_steps=1, trainer.val_before_train=false, trainer.test_freq=1]\n',
  );
  const hold = workspace.write('hold.train', '');
  const sweep = start('again.yaml', ...held());
  const [run] = await untilRunning('again', 1);
  await kill(run);
  await until('the second attempt', () => indexOf('again').members[0].attempts === 2);
  await until('the second attempt runs', () => existsSync(join(run, 'lease')) && statusOf(run)?.state === 'running');
  rmSync(hold);
  expect(await sweep.closed, sweep.stderr()).toBe(0);
  expect(sweep.stderr()).toContain('[1/1] words: trying again (1 of 1)');
  expect(indexOf('again').members[0]).toMatchObject({ attempts: 2 });
  expect(indexOf('again').members[0].problem).toBeUndefined();
});

test('halving stops the worse point at its rung, and a request stops the sweep', { timeout: 120_000 }, async () => {
  // A run is asked to stop when its second step is seen, which may be some steps later, but not all of these.
  const steps = 60;
  workspace.write(
    'halved.yaml',
    `config_name: words
overrides: [trainer.total_training_steps=${steps}, trainer.val_before_train=false, trainer.test_freq=1]
grid: {actor_rollout_ref.actor.optim.lr: [0.01, 0.00001]}
halving: {first_step: 2, factor: 100}
`,
  );
  const hold = workspace.write('hold.train', '');
  const args = ['halved.yaml', '--jobs', '2', ...held()];
  const asked = start(...args);
  await untilRunning('halved', 2);
  writeFileSync(join(indexFile('halved'), '../stop'), '');
  await until('the sweep stops', () => asked.stderr().includes('Stopping after the current steps.'));
  rmSync(hold);
  expect(await asked.closed).toBe(1);
  expect(existsSync(join(indexFile('halved'), '../stop'))).toBe(false);

  const { code, answer, stderr } = await document<Comparison>(workspace.folder, ['sweep', ...args]);
  expect(code, stderr).toBe(0);
  const [stopped, other] = [...answer.points].sort((a, b) => a.runs[0].steps - b.runs[0].steps);
  expect(other).toMatchObject({ stopped: null, runs: [{ state: 'finished', steps }] });
  expect(stopped.stopped).toMatchObject({ step: 2, rank: 2, of: 2 });
  expect(stopped.runs[0].state).toBe('stopped');
  expect(stopped.runs[0].steps).toBeLessThan(steps);
  expect(stderr).toContain(`halving: ${stopped.label} is stopped at step 2, rank 2 of 2`);
  expect(indexOf('halved').points.map(point => point.stopped)).toEqual(answer.points.map(point => point.stopped));

  const before = runsOf(workspace.folder).map(run => statusOf(run)?.updated);
  const again = await document<Comparison>(workspace.folder, ['sweep', ...args]);
  expect(again.code).toBe(0);
  expect(again.answer).toEqual(answer);
  expect(runsOf(workspace.folder).map(run => statusOf(run)?.updated)).toEqual(before);
});
