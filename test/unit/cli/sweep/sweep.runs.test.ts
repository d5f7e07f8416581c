// `ragen sweep` with real runs: they train, are interrupted, continue, and are compared; finished runs are not
// repeated.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Comparison } from '../../../../extension/cli/sweep/comparison';
import { document, killAll, ragen, readRun, runsOf, statusOf, until } from '../../../support/terminal';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const sweep = (steps: number) => `config_name: words
overrides: [trainer.total_training_steps=${steps}, trainer.val_before_train=false]
grid:
  actor_rollout_ref.actor.optim.lr: [0.01, 0.001]
seeds: [10, 20]
tags: [tried]
`;

test('two runs train at a time, each an ordinary run, and are compared at the end', async () => {
  workspace.write('rates.yaml', sweep(2));
  const args = ['sweep', 'rates.yaml', '--jobs', '2'];
  const { code, answer, stderr } = await document<Comparison>(workspace.folder, args);
  expect(code, stderr).toBe(0);
  expect(answer).toMatchObject({ sweep: 'rates', keys: ['actor_rollout_ref.actor.optim.lr'] });
  const runs = answer.points.flatMap(point => point.runs);
  expect(runs.map(({ seed, state, steps }) => [seed, state, steps])).toEqual(
    [10, 20, 10, 20].map(seed => [seed, 'finished', 2]),
  );
  for (const { final, runs } of answer.points) {
    expect(final).toMatchObject({ n: 2, mean: (runs[0].final! + runs[1].final!) / 2 });
    expect(final!.interval).toBeNull(); // an interval needs three seeds
  }
  const folder = join(workspace.folder, '.ragen/runs', runs[1].run!);
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Record<string, unknown>;
  expect(manifest).toMatchObject({
    name: 'rates lr=0.01 seed 20',
    sweep: { id: 'rates', point: 'lr=0.01, seed 20' },
    tags: ['tried'],
    seeds: { train: 20 },
  });
  expect(readRun(folder).metrics.at(-1)!['val-env/Words/success']).toBe(runs[1].final);
  expect(readFileSync(join(workspace.folder, '.ragen/sweeps/rates/comparison.csv'), 'utf8')).toContain(runs[1].run!);

  const again = await ragen(workspace.folder, args);
  expect(again.code).toBe(0);
  expect(again.stderr).toBe('4 of 4 runs are finished already\n');
  expect(again.stdout).toMatch(
    /^lr +final success +best success +difference +runs\n0\.01 .* 2 finished\n0\.001 .* 2 finished\n/,
  );
  expect(runsOf(workspace.folder)).toHaveLength(4);
});

test('an interrupt stops all runs with a checkpoint, and the same command continues', async () => {
  const before = runsOf(workspace.folder);
  workspace.write('cut.yaml', sweep(3));
  const held = [`custom_envs.Words.env_config.hold=${workspace.folder}/hold`, 'workbench.step_timeout_ms=60000'];
  const args = ['sweep', 'cut.yaml', '--jobs', '2', ...held];
  const hold = workspace.write('hold.train', '');
  const child = spawn(process.execPath, [join(root, 'dist/cli.cjs'), ...args], { cwd: workspace.folder });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', text => (said += text));
  const own = () => runsOf(workspace.folder).filter(run => !before.includes(run));
  const served = await until('two runs are served', () => {
    const runs = own().filter(run => statusOf(run)?.state === 'running');
    return runs.length === 2 && runs;
  });
  child.kill('SIGINT');
  // A run that was still validating needs no step of its environments, so it may have stopped already.
  const asked = ['stopping', 'stopped'];
  await until('the runs are asked to stop', () => served.every(run => asked.includes(statusOf(run)?.state ?? '')));
  rmSync(hold);
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  expect(code).toBe(1);
  expect(own()).toHaveLength(2); // no other was started
  expect(own().map(run => statusOf(run)?.state)).toEqual(['stopped', 'stopped']);
  expect(said).toContain('sweep cut: 4 of 4 runs are not finished: run the same command to continue them');

  const { code: end, answer, stderr } = await document<Comparison>(workspace.folder, args);
  expect(end, stderr).toBe(0);
  expect(stderr.match(/: resuming /g)).toHaveLength(2);
  const runs = answer.points.flatMap(point => point.runs);
  expect(runs.every(({ state, steps }) => state === 'finished' && steps === 3)).toBe(true);
  expect(own()).toHaveLength(4);
});

test('a failed run is reported and does not end the others', async () => {
  workspace.write(
    'bad.yaml',
    `config_name: words
overrides: [trainer.total_training_steps=1, trainer.val_before_train=false, trainer.test_freq=-1]
list: [[model_path=nowhere], []]
`,
  );
  const { code, answer, stderr } = await document<Comparison>(workspace.folder, ['sweep', 'bad.yaml']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /\[1\/2\] model_path=nowhere: config: model_path is "nowhere", but there is no config\.json in/,
  );
  expect(answer.points.map(({ runs }) => runs[0].state)).toEqual(['new', 'finished']);
  const { answer: compared } = await document<Comparison>(workspace.folder, ['sweep', 'bad.yaml', '--compare']);
  expect(compared).toEqual(answer);
});

test('a run with an unreadable status is reported with its file and does not end the others', async () => {
  const before = runsOf(workspace.folder);
  workspace.write(
    'unread.yaml',
    `config_name: words
overrides: [trainer.total_training_steps=1, trainer.val_before_train=false, trainer.test_freq=-1]
seeds: [30, 40]
`,
  );
  const made = await document<Comparison>(workspace.folder, ['sweep', 'unread.yaml']);
  expect(made.code, made.stderr).toBe(0);
  const [run] = runsOf(workspace.folder).filter(each => !before.includes(each));
  rmSync(join(run, 'status.json'));
  mkdirSync(join(run, 'status.json'));
  const { code, answer, stderr } = await document<Comparison>(workspace.folder, ['sweep', 'unread.yaml']);
  expect(code).toBe(1);
  expect(stderr).toContain(`${join(run, 'status.json')} is a folder, not a regular file: remove it`);
  const states = answer.points.flatMap(({ runs }) => runs.map(({ state }) => state));
  expect(states.sort()).toEqual(['damaged', 'finished']);
});
