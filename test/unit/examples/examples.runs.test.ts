// Runs what is in examples/: the environment keeps the contract, the bundled model learns it with its configuration,
// the readers in Python and in TypeScript print the same facts of the run, and the sweep runs all its points.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { transformSync } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ContractReport } from '../../../extension/protocol/environment-tools';
import type { Comparison } from '../../../extension/cli/sweep/comparison';
import { ownCharts } from '../../../extension/run-data/charts/own-charts';
import { document, killAll, readRun } from '../../support/terminal';
import { groupOverrides, stepOverrides } from '../../support/tiny-overrides';
import { root } from '../../support/workspace';

let folder: string;
/** Folder of the trained run. */
let run: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-examples-'));
  cpSync(join(root, 'examples'), folder, { recursive: true, filter: path => basename(path) !== '.ragen' });
});
afterAll(async () => {
  await killAll(folder);
  rmSync(folder, { recursive: true });
});

test('the environment keeps the contract', async () => {
  const { answer } = await document<ContractReport>(folder, ['env', 'check', 'envs/island.ts']);
  expect(answer.checks.filter(({ state }) => state === 'failed')).toEqual([]);
}, 120_000);

test('the bundled model learns the environment', async () => {
  const args = ['train', '--config-name', 'island', 'workbench.threads=2'];
  const { answer, code, stderr } = await document<{ folder: string; validation: { success: number }[] }>(folder, args);
  expect(code, stderr).toBe(0);
  run = answer.folder;
  const success = answer.validation.map(step => step.success);
  expect(success.at(-1)! - success[0]).toBeGreaterThan(0.1);
}, 600_000);

/** Validation success by step and the best episode, as the readers print them. */
function facts(): string {
  const { metrics, episodes } = readRun(run);
  const validations = metrics.filter(line => 'val-env/Island/success' in line);
  const trained = episodes.filter(({ mode }) => mode === 'train');
  const most = Math.max(...trained.map(({ score }) => score));
  const best = trained.filter(({ score }) => score === most).sort((a, b) => (a.id < b.id ? 1 : -1))[0];
  const lines = [
    ...validations.map(line => `step ${line.step}: ${(100 * Number(line['val-env/Island/success'])).toFixed(1)}%`),
    best.id,
    ...best.turns.map(({ thought }) => thought),
  ];
  expect(lines.length).toBeGreaterThan(4);
  return lines.join('\n');
}
/** Without the line of the score, whose form is the language's. */
const withoutScore = (printed: string): string => printed.trimEnd().replace(/^(train-\S+)\n.*$/m, '$1');

test('the reader in TypeScript prints the facts of the run', () => {
  const source = readFileSync(join(root, 'examples/read-run.ts'), 'utf8');
  const { code } = transformSync(source, { loader: 'ts', format: 'esm' });
  const args = ['--input-type=module', '-', run];
  const { stdout, stderr } = spawnSync(process.execPath, args, { input: code, encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(withoutScore(stdout)).toBe(facts());
});

test('the reader in Python prints the facts of the run', ({ skip }) => {
  const python = ['python3', 'python'].find(name => spawnSync(name, ['--version']).status === 0);
  if (python === undefined) skip('this machine has no Python');
  const { stdout, stderr } = spawnSync(python!, [join(root, 'examples/read_run.py'), run], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(withoutScore(stdout)).toBe(facts());
});

test('a run uses the plug-ins', async () => {
  const short = [...stepOverrides(2), 'trainer.test_freq=-1', ...groupOverrides('val', [1]), 'workbench.threads=2'];
  const args = ['train', '--config-name', 'island-plugins', ...short];
  const { answer, code, stderr } = await document<{ folder: string }>(folder, args);
  expect(code, stderr).toBe(0);
  const { metrics, events } = readRun(answer.folder);
  for (const line of metrics) {
    expect(line).toHaveProperty(['plugins/first_moves/entropy']);
    expect(Object.keys(line).some(key => key.startsWith('plugin_charts/move_share/'))).toBe(true);
  }
  expect(events.filter(({ kind }) => kind === 'plugin_error')).toEqual([]);
  expect(ownCharts(events).map(({ name }) => name)).toEqual(['move_share', 'learning_signal']);
  expect(metrics.some(line => Number(line['rollout/filter_kept_ratio']) < 1)).toBe(true);
}, 300_000);

test('a run uses the context memory', async () => {
  const short = [...stepOverrides(1), 'trainer.test_freq=-1', ...groupOverrides('val', [1]), 'workbench.threads=2'];
  const memory = ['agent_proxy.context_window_mode=single_turn', 'workbench.plugins.memory=plugins/moves_so_far.ts'];
  const args = ['train', '--config-name', 'island', ...short, ...memory];
  const { answer, code, stderr } = await document<{ folder: string }>(folder, args);
  expect(code, stderr).toBe(0);
  const later = readRun(answer.folder).episodes.filter(({ turns }) => turns.length > 1);
  expect(later.length).toBeGreaterThan(0);
  for (const { turns, messages } of later) {
    const moves = turns[0].executed.map(String).join(', ');
    const second = messages.filter(({ role }) => role === 'user')[1].content;
    expect(second.startsWith(moves === '' ? '\nTurn 2:' : `Moves so far: ${moves}.\n`), second).toBe(true);
  }
}, 300_000);

test('the sweep runs its points and compares them', async () => {
  const args = ['sweep', 'island-rates', '--jobs', '2'];
  const short = [
    ...[...stepOverrides(1), 'trainer.test_freq=1'],
    ...[...groupOverrides('train', [1]), 'ppo_mini_batch_size=4', 'micro_batch_size_per_gpu=4'],
    ...groupOverrides('val', [1]),
  ];
  const { answer, code, stderr } = await document<Comparison>(folder, [...args, ...short]);
  expect(code, stderr).toBe(0);
  expect(answer.points.map(({ values }) => Object.values(values))).toEqual([[1e-4], [4e-4]]);
  expect(answer.points.flatMap(({ runs }) => runs.map(({ state }) => state))).toEqual(Array(4).fill('finished'));
}, 300_000);
