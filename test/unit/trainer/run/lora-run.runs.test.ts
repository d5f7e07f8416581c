// A run of the real trainer with adapters, 8-bit rollouts, a reference policy, importance weights and 8-bit moments.
// After a stop and a resume, the run equals an uninterrupted run bit by bit. Checkpoints contain adapters in PEFT's
// format.
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stop } from '../../../../extension/protocol/trainer-link';
import { readDecoderConfig } from '../../../../extension/models/weights/model-folder';
import { readAdapter } from '../../../../extension/models/adapters/peft-adapter';
import { HeldEpisodes } from '../../../support/held-episodes';
import { document, killAll, leaseOf, readRun, results, startDetached, until } from '../../../support/terminal';
import { joinRun } from '../../../support/watcher';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let reference: string;
let held: HeldEpisodes;

const overrides = (): string[] => [
  ...['lora.rank=4', 'lora.alpha=8', 'lora.dropout=0.1', 'lora.target_modules=[q_proj,v_proj,down_proj]'],
  ...['workbench.rollout_quantization=int8'],
  ...['actor_rollout_ref.actor.use_ref=true', 'actor_rollout_ref.actor.use_kl_loss=true'],
  ...['actor_rollout_ref.actor.kl_loss_type=low_var_kl', 'actor_rollout_ref.actor.ppo_mini_batch_size=8'],
  ...['actor_rollout_ref.rollout.rollout_filter_value=1', 'actor_rollout_ref.rollout.rollout_filter_include_zero=true'],
  'actor_rollout_ref.actor.optim.moments=int8',
  // Validation runs after every step, and its environments can be paused, so that the stop happens in a validation.
  ...['trainer.total_training_steps=3', 'trainer.val_before_train=false', 'trainer.test_freq=1'],
  ...['es_manager.val.env_groups=2', 'es_manager.val.env_configs.n_groups=[2]'],
  ...held.overrides,
];

beforeAll(async () => {
  workspace = makeWorkspace();
  process.env.XDG_CACHE_HOME = join(workspace.folder, 'cache');
  held = new HeldEpisodes(workspace.folder);
  const args = ['train', '--config-name', 'words', ...overrides()];
  const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, args);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('note: config: algorithm.rollout_correction.rollout_is is auto, which weights each token');
  reference = answer.folder;
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

test('adapters diverge from the reference, and rollouts are sampled from the 8-bit policy', () => {
  const { metrics } = readRun(reference);
  const values = (key: string): number[] => metrics.map(line => Number(line[key]));
  expect(values('actor/grad_norm').every(norm => norm > 0)).toBe(true);
  expect(values('actor/kl_loss')[0]).toBeCloseTo(0, 5); // a new adapter equals the base
  expect(values('actor/kl_loss')[2]).toBeGreaterThan(1e-5);
  expect(values('rollout_corr/prob_diff_mean').every(difference => difference > 1e-6 && difference < 0.05)).toBe(true);
  expect(values('rollout_corr/rollout_is_mean').every(mean => Math.abs(mean - 1) < 0.1)).toBe(true);
  expect(values('rollout_corr/rollout_is_std').every(std => std > 0)).toBe(true);
  // The 8-bit base was created once, beside other caches.
  expect(readdirSync(join(workspace.folder, 'cache/ragen-workbench/quantized'))).toHaveLength(1);
});

test('a checkpoint contains an adapter in PEFT’s format and the optimizer state', async () => {
  const checkpoint = join(reference, 'checkpoints', readRun(reference).checkpoints.at(-1)!);
  const files = [
    'adapter_config.json',
    'adapter_model.safetensors',
    'checkpoint.json',
    'actor.m',
    'actor.m_scale',
    'actor.v',
    'actor.v_scale',
  ];
  expect(
    readdirSync(checkpoint)
      .filter(name => name !== 'README.md')
      .sort(),
  ).toEqual(files.sort());
  const config = JSON.parse(readFileSync(join(checkpoint, 'adapter_config.json'), 'utf8')) as Record<string, unknown>;
  expect(config).toMatchObject({ peft_type: 'LORA', task_type: 'CAUSAL_LM', r: 4, lora_alpha: 8, bias: 'none' });
  expect([...(config.target_modules as string[])].sort()).toEqual(['down_proj', 'q_proj', 'v_proj']);
  const model = join(workspace.folder, 'models/random');
  const { lora, factors } = await readAdapter(checkpoint, { config: readDecoderConfig(model), folder: model });
  expect(lora).toMatchObject({ rank: 4, alpha: 8, dropout: 0.1 });
  const second = factors.specs.filter(({ name }) => name.includes('lora_B'));
  expect(second.map(({ name }) => factors.view(name).some(x => x !== 0))).toEqual([true, true, true]);
  const scored = await document<{ logprobs: (number | null)[] }[]>(workspace.folder, [
    ...['score', '--model', model, '--adapter', checkpoint],
    ...['--input', workspace.write('rows.json', JSON.stringify([{ tokens: [1, 2, 3] }]))],
  ]);
  expect(scored.code, scored.stderr).toBe(0);
  expect(scored.answer[0].logprobs.slice(1).every(Number.isFinite)).toBe(true);
});

test('a run stopped after a step and resumed equals an uninterrupted run', async () => {
  held.set('val');
  const run = await startDetached(workspace.folder, overrides());
  await held.reached('val'); // the validation after the first step
  const watcher = await joinRun(run);
  expect((await watcher.link.sendRequest(stop, null)).state).toBe('stopping');
  held.release('val');
  await until('the run ends', () => !leaseOf(run));
  expect(readRun(run)).toMatchObject({ status: { state: 'stopped' }, checkpoints: ['step-000001'] });

  const { code, stderr } = await document(workspace.folder, ['resume', basename(run)]);
  expect(code, stderr).toBe(0);
  expect(readRun(run).metrics.map(({ step }) => step)).toEqual([1, 2, 3]);
  expect(readRun(run).status).toMatchObject({ state: 'finished', step: 3 });
  expect(results(run)).toEqual(results(reference));
});
