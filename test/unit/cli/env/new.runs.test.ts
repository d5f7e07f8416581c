// A new environment can be trained immediately: the scaffold passes its contract checks and its cases, and its own
// configuration trains on it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ContractReport } from '../../../../extension/protocol/environment-tools';
import { document } from '../../../support/terminal';

let folder: string;
let made: { name: string; files: string[] };
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-scaffold-'));
  ({ answer: made } = await document<typeof made>(folder, ['env', 'new', 'ice_field']));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a scaffold consists of code, cases, configuration and the editor’s settings, and is written once', async () => {
  const files = [
    'envs/ice_field/ice_field.ts',
    'envs/ice_field/ice_field.cases.json',
    'config/ice_field.yaml',
    'envs/tsconfig.json',
  ];
  expect(made).toEqual({ name: 'ice_field', files: files.map(file => join(folder, file)) });
  const again = await document<{ error: { message: string } }>(folder, ['env', 'new', 'ice_field']);
  expect(again.code).toBe(1);
  expect(again.answer.error.message).toBe(
    'ice_field cannot be the name of a new environment: envs/ice_field/ice_field.ts already exists.',
  );
});

test('a scaffold passes the contract and its own cases', async () => {
  const { code, answer, stderr } = await document<ContractReport>(folder, ['env', 'check', 'ice_field']);
  expect([code, stderr]).toEqual([0, '']);
  expect(answer.checks.filter(({ name }) => name.startsWith('case: ')).map(({ state }) => state)).toEqual([
    'passed',
    'passed',
    'passed',
  ]);
});

test("a scaffold's configuration trains on it", async () => {
  const small = ['trainer.total_training_steps=2', 'trainer.save_freq=0', 'trainer.test_freq=0'];
  const groups = [
    'es_manager.train.env_groups=4',
    'es_manager.train.env_configs.n_groups=[4]',
    'ppo_mini_batch_size=16',
    'micro_batch_size_per_gpu=16',
  ];
  const val = ['es_manager.val.env_groups=4', 'es_manager.val.env_configs.n_groups=[4]'];
  const args = ['train', '--config-name', 'ice_field', ...small, ...groups, ...val];
  const { code, answer, stderr } = await document<{ state: string; steps: number; folder: string }>(folder, args);
  expect([code, answer.state, answer.steps], stderr).toEqual([0, 'finished', 2]);
  const lines = readFileSync(join(answer.folder, 'metrics.jsonl'), 'utf8').trim().split('\n');
  expect(lines.some(line => line.includes('"rollout/'))).toBe(true);
}, 120_000);
