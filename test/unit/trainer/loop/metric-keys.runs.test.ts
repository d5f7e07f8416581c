// Compares docs/METRICS.md with the metrics of runs: each logged key is documented, and each documented key is logged
// by a run. Together, the configurations enable every feature that logs its own keys.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { meaningOf, parseMetricMeanings } from '../../../../extension/run-data/metric-meanings';
import { installation } from '../../../../extension/node/installation';
import { startPeer, type ApiPeer } from '../evaluation/api-peer';
import { keepAll, trainHere } from '../../../support/train-here';
import { makeWorkspace, root, wordsEnvironment } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let judges: ApiPeer;
beforeAll(async () => {
  workspace = makeWorkspace();
  judges = await startPeer();
  judges.answer = messages => ({ text: `Score: ${checksum(JSON.stringify(messages)) % 11}` });
  process.env.RAGEN_TEST_JUDGE_KEY = judges.key;
  workspace.write('rubric.md', 'Is the answer clear?');
  for (const [name, value] of [
    ['one', '1'],
    ['several', '{ a: 1, b: 2 }'],
  ])
    workspace.write(
      `plugins/${name}.ts`,
      `import { defineMetric } from 'ragen-workbench/api/plugins/metric';
export default defineMetric({ name: '${name}', measure: () => (${value}) });`,
    );
  workspace.write(
    'plugins/drawn.ts',
    `import { defineChart } from 'ragen-workbench/api/plugins/chart';
export default defineChart({ name: 'drawn', lines: () => ({ a: 1 }) });`,
  );
  const result = (extra: string): string =>
    `return { observation: '', ${extra}, terminated: String(action).length % 2 === 0, truncated: false };`;
  workspace.write(
    'environments/shop.ts', // the name enables sums of the turns' info
    wordsEnvironment(
      result(
        'reward: String(action).length / 9, info: { success: true, raw_reward: 1, score: 2, max_tile: 8, price: 3, action_is_effective: true, action_is_valid: true }',
      ),
    ),
  );
  workspace.write('environments/alike.ts', wordsEnvironment(result('reward: 0, info: {}')));
});
afterAll(async () => {
  delete process.env.RAGEN_TEST_JUDGE_KEY;
  await judges.close();
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const lakes = [
  'model_path=ragen-tiny',
  '+custom_envs.Lake={env_type: frozen_lake, max_actions_per_traj: 10, max_tokens: 60, env_instruction: Walk over the lake to the goal., env_config: {size: 4}}',
  ...[
    'es_manager.train.env_configs.tags=[Lake]',
    'es_manager.train.env_groups=4',
    'es_manager.train.env_configs.n_groups=[4]',
  ],
  ...['agent_proxy.enable_think=true', 'actor_rollout_ref.actor.optim.lr=1e-5'],
  ...['actor_rollout_ref.rollout.response_length=64', 'actor_rollout_ref.rollout.max_model_len=1024'],
];
const reference = ['actor_rollout_ref.actor.use_ref=true', 'actor_rollout_ref.actor.use_kl_loss=true'];

/** Depends on the text alone, so that the judges' scores do not depend on the order of their requests. */
const checksum = (text: string): number => [...text].reduce((sum, char) => sum + char.charCodeAt(0), 0);

/** Two judges of one component, behind a service on this machine. */
const judged = (url: string): string[] => [
  `++model_info={${['one', 'other']
    .map(
      name =>
        `${name}: {provider_name: openai, model_name: ${name}, base_url: '${url}/v1', api_key_env: RAGEN_TEST_JUDGE_KEY, price_per_million: {input: 1, output: 1}}`,
    )
    .join(', ')}}`,
  '++custom_envs.Words.rewards={repetition: {weight: -0.1}, judges: {clarity: {weight: 0.1, rubric: rubric.md, models: [one, other]}}}',
];

/** `judgesUrl`: address of the judges' service. */
const configurations = (judgesUrl: string): [what: string, overrides: string[], steps: number][] => [
  [
    'PPO with KL, collapse diagnosis, validation and checkpoints',
    [
      ...lakes,
      ...keepAll,
      ...reference,
      ...[
        'algorithm.rollout_correction.rollout_is=token',
        'algorithm.adv_estimator=gae',
        'algorithm.use_kl_in_reward=true',
        'trainer.save_freq=1',
        'trainer.test_freq=1',
      ],
      ...['collapse_detection.num_samples=12', 'workbench.collapse_turn_uniform=true'],
    ],
    2,
  ],
  [
    'GRPO with measured gradients, weighted groups, dynamic sampling and a filter by entropy',
    [
      ...reference,
      ...['trainer.gradient_analysis_mode=true', 'trainer.gradient_analysis_log_prefilter=true'],
      ...['algorithm.soft_advantage_reweight=true', 'algorithm.filter_groups.enable=true'],
      ...['es_manager.train.env_groups=4', 'es_manager.train.env_configs.n_groups=[4]'],
      ...['actor_rollout_ref.rollout.rollout_filter_metric=entropy_variance'],
    ],
    1,
  ],
  [
    'ReMax with a filter by length',
    ['algorithm.adv_estimator=remax', 'actor_rollout_ref.rollout.rollout_filter_metric=length', ...keepAll],
    1,
  ],
  [
    'a quarter of the episodes, and metrics of the workspace',
    [
      ...['workbench.trajectory_filter.strategy=top', 'workbench.trajectory_filter.only_successful=false'],
      'workbench.plugins.metrics=[plugins/one.ts,plugins/several.ts]',
      'workbench.plugins.charts=[plugins/drawn.ts]',
      ...['ppo_mini_batch_size=2', 'micro_batch_size_per_gpu=2', ...keepAll],
    ],
    1,
  ],
  [
    'what a shop tells of its turns',
    [
      '+custom_envs.MyWebShop={env_type: environments/shop.ts, max_actions_per_traj: 4}',
      ...['es_manager.train.env_configs.tags=[MyWebShop]', 'es_manager.val.env_configs.tags=[MyWebShop]'],
      ...['trainer.test_freq=1', ...keepAll],
    ],
    1,
  ],
  [
    'reward components, two of them with judges',
    [
      ...judged(judgesUrl),
      'trainer.test_freq=1',
      'es_manager.val.env_groups=4',
      'es_manager.val.env_configs.n_groups=[4]',
      ...keepAll,
    ],
    1,
  ],
  ['on-policy distillation', ['++workbench.distillation={teacher: models/random}', ...keepAll], 1],
  [
    'a curriculum over two tags',
    [
      '+custom_envs.Alike={env_type: environments/alike.ts, max_actions_per_traj: 4}',
      'es_manager.train.env_configs.tags=[Words,Alike]',
      'es_manager.train.env_configs.n_groups=[1,1]',
      ...['workbench.curriculum={}', 'workbench.response_filters={gibberish: {}, repetition: {}}', ...keepAll],
    ],
    1,
  ],
  [
    'a run that the filter ends',
    [
      ...['custom_envs.Words.env_type=environments/alike.ts', 'es_manager.format_penalty=0'],
      'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=1',
    ],
    2,
  ],
];

/** Keys logged only by a step with non-finite values; skipped-steps.test.ts covers them. */
const afterFaults = ['train/skipped_step'];
/**
 * Keys logged only with an engine over the network; tinker-run.runs.test.ts and asynchronous-training.runs.test.ts cover
 * them.
 */
const onServers = ['actor/entropy_estimate', 'rollout/overlap', 'rollout/staleness', 'timing_s/rollout_wait'];

/** Keys logged only if the model calls tools; tool-rollout.runs.test.ts covers them. */
const withTools = ['train', 'val-env'].flatMap(side =>
  ['tool_calls', 'failed_tool_calls', 'tool_call_ms'].map(key => `${side}/<tag>/${key}`),
);

/** Keys logged only in environments with roles; roles.runs.test.ts covers them. */
const withRoles = ['train', 'val-env'].flatMap(side =>
  ['score', 'success', 'turns'].map(key => `${side}/<tag>/roles/<role>/${key}`),
);

/** Keys only in runs of other trainers; the tests of rollout-diagnosis and validation-summary in foreign-runs cover them. */
const inAttached = ['response_length/characters', 'val-env/num_prompts'];

/** Keys logged only on a machine with an NVIDIA GPU; system-use.test.ts covers them. */
const onGpus = ['perf/gpu_busy', 'perf/gpu_memory_mb'];

test('the document and the runs contain the same keys', async () => {
  const documented = parseMetricMeanings(readFileSync(join(root, 'docs/METRICS.md'), 'utf8'));
  const itself = Object.fromEntries(Object.keys(documented).map(key => [key, key]));
  const found = new Set<string>();
  for (const [what, overrides, steps] of configurations(judges.url)) {
    const { lines } = await trainHere(workspace, overrides, steps);
    const keys = lines.flatMap(Object.keys);
    expect(
      keys.filter(key => meaningOf(documented, key) === undefined),
      what,
    ).toEqual([]);
    for (const key of keys) found.add(meaningOf(itself, key)!);
  }
  const missing = Object.keys(documented).filter(key => !found.has(key) && !onGpus.includes(key));
  expect(missing.sort()).toEqual([...afterFaults, ...onServers, ...withTools, ...withRoles, ...inAttached].sort());
}, 180_000);
