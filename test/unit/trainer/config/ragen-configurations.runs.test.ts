// RAGEN's configurations train unchanged if their environments exist: two steps of the bundled model, with fewer and
// shorter episodes. docs/METRICS.md documents every logged key. A configuration whose environment does not exist is
// refused with one sentence.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { meaningOf, parseMetricMeanings } from '../../../../extension/run-data/metric-meanings';
import { document, killAll, ragen, readRun } from '../../../support/terminal';
import { stepOverrides, tinyOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const meanings = parseMetricMeanings(readFileSync(join(root, 'docs/METRICS.md'), 'utf8'));

const small = (validationTags = 1) => [
  'model_path=ragen-tiny',
  ...stepOverrides(2),
  ...tinyOverrides({ groups: 2, validationTags, turns: 2, tokens: 12, miniBatch: 4 }),
];

interface Summary {
  folder: string;
  state: string;
  steps: number;
}

test.each([
  ['base', 'CoordSokoban', 1],
  ['_1_bandit', 'Bandit', 2],
  ['_3_frozen_lake', 'CoordFrozenLake', 1],
])('%s trains', async (name, tag, tags) => {
  const args = ['train', '--config-name', name, ...small(tags)];
  const { code, answer, stderr } = await document<Summary>(workspace.folder, args);
  expect(code, stderr).toBe(0);
  expect(answer).toMatchObject({ state: 'finished', steps: 2 });
  const { metrics } = readRun(answer.folder);
  expect(metrics.map(({ step }) => step)).toEqual([1, 2]);
  for (const line of metrics) expect(line['critic/grad_norm']).toBeGreaterThan(0); // gae is the default estimator
  expect(metrics[1]).toHaveProperty([`val-env/${tag}/success`]);
  const keys = [...new Set(metrics.flatMap(line => Object.keys(line)))];
  expect(keys.filter(key => meaningOf(meanings, key) === undefined)).toEqual([]);
});

test('stream plays its single episode', async () => {
  const args = ['eval', '--config-name', 'stream', ...small().filter(o => !o.startsWith('es_manager.val'))];
  const { code, answer, stderr } = await document<Summary>(workspace.folder, args);
  expect(code, stderr).toBe(0);
  expect(readRun(answer.folder).episodes.map(({ tag }) => tag)).toEqual(['SimpleSokoban']);
});

test('a configuration whose environment is missing in this version is refused before a run is created', async () => {
  const lacking = [
    'train',
    '--config-name',
    'base',
    'model_path=ragen-tiny',
    'custom_envs.CoordSokoban.env_type=spatial',
  ];
  const { code, stderr } = await ragen(workspace.folder, lacking);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^config: custom_envs\.CoordSokoban\.env_type is spatial, an environment of RAGEN that is not available in this version: .*\n$/,
  );
});

describe('ragen config', () => {
  interface Shown {
    hash: string;
    sources: string[];
    config: Record<string, unknown>;
    ignored: { key: string; reason: string }[];
  }
  const overrides = ['ppo_mini_batch_size=16', 'trainer.n_gpus_per_node=4', 'trainer.logger=[console,wandb]'];
  const show = (...more: string[]) =>
    document<Shown>(workspace.folder, ['config', '--config-name', '_2_sokoban', ...overrides, ...more]);

  test('resolves references with --resolved, and reports each key without effect once, with the reason', async () => {
    const { code, answer } = await show('--resolved');
    expect(code).toBe(0);
    expect(answer.config).toMatchObject({
      trainer: { experiment_name: 'sokoban' },
      critic: { ppo_mini_batch_size: 16 },
      actor_rollout_ref: { actor: { ppo_mini_batch_size: 16 }, model: { path: 'Qwen/Qwen2.5-3B-Instruct' } },
    });
    expect(answer.config.trainer).not.toHaveProperty('n_gpus_per_node');
    expect(answer.ignored).toEqual([
      { key: 'trainer.n_gpus_per_node', reason: 'has no effect here: it configures GPU placement' },
      { key: 'trainer.logger', reason: expect.stringContaining('names wandb') },
    ]);
    expect(answer.sources.map(file => file.slice(root.length))).toEqual(
      ['_2_sokoban', 'base', 'ppo_trainer', 'envs'].map(name => `/media/presets/${name}.yaml`),
    );
  });

  test('keeps references without --resolved', async () => {
    const { answer } = await show();
    expect(answer.config).toMatchObject({ critic: { ppo_mini_batch_size: '${ppo_mini_batch_size}' } });
  });

  test('prints a configuration that resolves to itself', async () => {
    const { answer } = await show('--resolved');
    const { stdout } = await ragen(workspace.folder, [
      'config',
      '--config-name',
      '_2_sokoban',
      ...overrides,
      '--resolved',
    ]);
    expect(parse(stdout)).toEqual(answer.config);
    expect(stdout).toContain('# trainer.n_gpus_per_node has no effect here: it configures GPU placement.\n');
    const file = workspace.write('resolved.yaml', stdout);
    const again = await document<Shown>(workspace.folder, ['config', '--config', file, '--resolved']);
    expect(again.answer).toMatchObject({ hash: answer.hash, config: answer.config });
  });

  test('reports the errors that a run reports', async () => {
    const { code, stderr } = await ragen(workspace.folder, ['config', '--config-name', 'base', 'algorithm.lam=2']);
    expect(code).toBe(1);
    expect(stderr).toBe('config: algorithm.lam is 2: use a number ≥ 0 and ≤ 1 (override algorithm.lam=2)\n');
  });
});
