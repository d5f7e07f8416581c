// Runs that train the vision encoder of random models of each family, with all weights and with adapters: a killed run
// that continues equals an uninterrupted one to the bit, checkpoints contain the encoder, a run starts from an adapter
// folder, and ragen export writes the merged model.
import { existsSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAdapter } from '../../../../extension/models/adapters/peft-adapter';
import { isOfDecoder } from '../../../../extension/models/vision/stored-names';
import { readVisionModel } from '../../../../extension/models/vision/vision-folder';
import { readDecoderConfig, readEncoderConfig } from '../../../../extension/models/weights/model-folder';
import { installation } from '../../../../extension/node/installation';
import { document, kill, killAll, readRun, results, statusOf, until } from '../../../support/terminal';
import { keepAll } from '../../../support/train-here';
import { tinyOverrides } from '../../../support/tiny-overrides';
import { makeVisionModel, type TinyVision } from '../../../support/vision-checkpoints';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
const models = new Map<TinyVision, string>();
const families = ['qwen2_5_vl', 'qwen3_vl', 'idefics3'] as const;

beforeAll(async () => {
  workspace = makeWorkspace();
  for (const family of families) models.set(family, await makeVisionModel(workspace.folder, family));
});
afterAll(async () => {
  await killAll(workspace.folder);
  rmSync(installation.cache, { recursive: true, force: true });
  workspace.remove();
});

const settings = (family: TinyVision, more: readonly string[], steps: number): string[] => [
  ...['--config-name', 'quickstart-sokoban'],
  ...tinyOverrides({ groups: 2, turns: 2, tokens: 6, miniBatch: 2 }),
  `model_path=${models.get(family)!}`,
  'es_manager.train.env_configs.tags=[VisualSimpleSokoban]',
  'es_manager.val.env_configs.tags=[VisualSimpleSokoban]',
  'actor_rollout_ref.rollout.max_model_len=1000',
  'actor_rollout_ref.actor.optim.lr=0.01',
  // The reference policy sees the pictures of the first weights.
  ...[
    'actor_rollout_ref.actor.use_ref=true',
    'actor_rollout_ref.actor.use_kl_loss=true',
    'actor_rollout_ref.actor.kl_loss_coef=0.05',
  ],
  'actor_rollout_ref.actor.freeze_vision_tower=false',
  ...[`trainer.total_training_steps=${steps}`, 'trainer.save_freq=1', 'trainer.val_before_train=false'],
  'trainer.test_freq=-1',
  ...keepAll,
  ...more,
];
const adapters = ['lora.rank=2', 'lora.alpha=8', 'lora.dropout=0.1'];

async function start(family: TinyVision, more: readonly string[], steps: number, ...flags: string[]): Promise<string> {
  const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, [
    'train',
    ...settings(family, more, steps),
    ...flags,
  ]);
  expect(code, stderr).toBe(0);
  return answer.folder;
}

const lastCheckpoint = (run: string): string => join(run, 'checkpoints', readRun(run).checkpoints.at(-1)!);

describe.each(families)('%s', family => {
  test.each([
    ['all weights', []],
    ['adapters', adapters],
  ])(
    'a run that is killed and continues equals an uninterrupted run: %s',
    async (_, more) => {
      const whole = await start(family, more, 3);
      for (const line of readRun(whole).metrics) expect(line['actor/grad_norm']).toBeGreaterThan(0);
      const last = Number(readRun(whole).metrics.at(-1)!['actor/kl_loss']);
      expect(last).toBeGreaterThan(0);

      const run = await start(family, more, 3, '--detach');
      await until('a checkpoint exists', () => (statusOf(run)?.step ?? 0) >= 1 && readRun(run).checkpoints.length > 0);
      await kill(run);
      expect(statusOf(run)?.step).toBeLessThan(3);
      const { code, stderr } = await document(workspace.folder, ['resume', basename(run)]);
      expect(code, stderr).toBe(0);
      expect(results(run)).toEqual(results(whole));

      const [model, checkpoint] = [models.get(family)!, lastCheckpoint(run)];
      if (more.length === 0) {
        const [first, trained] = [await readVisionModel(model), await readVisionModel(checkpoint)];
        expect(trained.encoder.specs).toEqual(first.encoder.specs);
        for (const part of ['encoder', 'decoder'] as const)
          for (const { name, dims } of first[part].specs)
            if (dims.length === 2) expect(trained[part].view(name), name).not.toEqual(first[part].view(name));
        return;
      }
      const base = { config: readDecoderConfig(model), folder: model, encoder: readEncoderConfig(model) };
      const { lora, factors, adaptsEncoder } = await readAdapter(checkpoint, base);
      expect(lora).toMatchObject({ rank: 2, alpha: 8, targets: 'all-linear' });
      expect(adaptsEncoder).toBe(true);
      const second = factors.specs.filter(({ name }) => name.includes('lora_B') && !isOfDecoder(name));
      expect(second.length).toBeGreaterThan(5);
      for (const { name } of second)
        expect(
          factors.view(name).some(x => x !== 0),
          name,
        ).toBe(true);
    },
    300_000,
  );
});

test('a run starts from an adapter folder with factors of the encoder, and its export is merged', async () => {
  const more = [...adapters, 'lora.exclude_modules=.*merger.*'];
  const first = await start('qwen2_5_vl', more, 1);
  const adapter = lastCheckpoint(first);
  const next = await start('qwen2_5_vl', [`actor_rollout_ref.model.lora_adapter_path=${adapter}`], 1);
  const model = models.get('qwen2_5_vl')!;
  const base = { config: readDecoderConfig(model), folder: model, encoder: readEncoderConfig(model) };
  const [before, after] = [await readAdapter(adapter, base), await readAdapter(lastCheckpoint(next), base)];
  expect(after.factors.specs).toEqual(before.factors.specs);
  expect(after.factors.specs.some(({ name }) => name.includes('merger'))).toBe(false);
  expect(after.factors.flat).not.toEqual(before.factors.flat);

  const frozen = await document<unknown>(workspace.folder, [
    'train',
    ...settings('qwen2_5_vl', [`actor_rollout_ref.model.lora_adapter_path=${adapter}`], 1),
    'actor_rollout_ref.actor.freeze_vision_tower=true',
  ]);
  expect(frozen.code).not.toBe(0);
  expect(frozen.stderr).toContain('actor_rollout_ref.actor.freeze_vision_tower is true, but the adapter in');

  const out = join(workspace.folder, 'exported');
  const { code, stderr, answer } = await document<{ merged_layers: number }>(workspace.folder, [
    ...['export', '--run', basename(next), '--out', out],
  ]);
  expect(code, stderr).toBe(0);
  expect(answer.merged_layers).toBe(after.factors.specs.length / 2);
  const [merged, original] = [await readVisionModel(out), await readVisionModel(model)];
  const qkv = 'visual.blocks.0.attn.qkv.weight';
  expect(merged.encoder.view(qkv)).not.toEqual(original.encoder.view(qkv));
  const projection = 'visual.merger.mlp.0.weight';
  expect(merged.encoder.view(projection)).toEqual(original.encoder.view(projection));
  expect(existsSync(join(out, 'preprocessor_config.json'))).toBe(true);
}, 300_000);
