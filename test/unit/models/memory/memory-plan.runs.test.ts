// The memory plan against measured processes, and its values for models too large to load here.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { parameterSpecs, parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import type { DecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { largestMicroBatchTokens, planMemory } from '../../../../extension/models/memory/memory-plan';
import type { PlanInput } from '../../../../extension/models/memory/plan-input';
import { phases } from '../../../../extension/models/memory/memory-rows';
import { Weights, initialize } from '../../../../extension/models/weights/weights';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { measuredPeaks, passes, plain, uncollected } from '../../../support/memory-plans';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();

interface Shape {
  hidden: number;
  layers: number;
  vocab: number;
}

const configOf = ({ hidden, layers, vocab }: Shape) => ({
  model_type: 'qwen2',
  vocab_size: vocab,
  hidden_size: hidden,
  intermediate_size: 4 * hidden,
  num_hidden_layers: layers,
  num_attention_heads: hidden / 32,
  num_key_value_heads: hidden / 64,
  max_position_embeddings: 4096,
  rms_norm_eps: 1e-6,
  tie_word_embeddings: true,
});

async function writeRandom(shape: Shape): Promise<string> {
  const path = join(folder(), 'model');
  mkdirSync(path, { recursive: true });
  const json = configOf(shape);
  writeFileSync(join(path, 'config.json'), JSON.stringify(json));
  const weights = new Weights(parameterSpecs(parseDecoderConfig(json, path)));
  initialize(weights, new RandomStream(3), 0.02);
  await writeSafetensors(
    join(path, 'model.safetensors'),
    weights.specs.map(({ name, dims }) => ({ name, shape: dims, data: weights.view(name) })),
  );
  return path;
}

const lora = { rank: 8, alpha: 16, dropout: 0, targets: 'all-linear' };

/** Peak bytes of a process up to the end of each phase, and the bytes in the plan. */
async function compare(shape: Shape, input: Omit<PlanInput, 'decoder'>) {
  const path = await writeRandom(shape);
  const held = await measuredPeaks(path, shape.vocab, input, join(folder(), 'cache'));
  return { held, plan: planMemory({ ...input, decoder: parseDecoderConfig(configOf(shape), path) }) };
}

describe('the memory of a process by the end of each phase', () => {
  const small = { hidden: 128, layers: 4, vocab: 512 };
  const wide = { hidden: 256, layers: 2, vocab: 16384 };
  test.each<[string, Shape, Omit<PlanInput, 'decoder'>]>([
    [
      'all weights, with critic and reference',
      small,
      { ...plain, ...passes(2048), longest: 128, rollouts: 4, critic: true, reference: true, klLoss: true },
    ],
    [
      "a diagnosis of collapse and GSPO's loss",
      wide,
      { ...plain, ...passes(1024), longest: 128, rollouts: 8, diagnosisTokens: 1024, lossMode: 'gspo' },
    ],
    ['all weights of a wide model: optimizer and logits', wide, { ...plain, ...passes(512), longest: 64, rollouts: 8 }],
    [
      'adapters, activations computed again, an 8-bit base',
      wide,
      {
        ...{ ...plain, ...passes(1024), longest: 64, rollouts: 4, lora, checkpointed: true, reference: true },
        ...{ klLoss: true, rolloutQuantization: 'int8', baseQuantization: 'int8' },
      },
    ],
  ])('is as planned within a third: %s', async (_, shape, input) => {
    const { held, plan } = await compare(shape, input);
    for (const { phase, held: planned } of plan.phases) {
      const off = Math.abs(planned - held[phase]);
      expect(off, `${phase}: ${planned} planned, ${held[phase]} held`).toBeLessThan(held[phase] / 3 + uncollected);
    }
    expect(plan.phases.map(({ phase }) => phase)).toEqual(phases.filter(phase => phase in held));
  });
});

/** Qwen2.5-0.5B with the given number of layers. */
const half = (layers: number): DecoderConfig =>
  parseDecoderConfig(
    {
      ...configOf({ hidden: 896, layers, vocab: 151936 }),
      intermediate_size: 4864,
      num_attention_heads: 14,
      num_key_value_heads: 2,
    },
    'config.json',
  );
const input: PlanInput = {
  ...{ ...plain, decoder: half(3), stored: 'BF16', lora, checkpointed: true, reference: true, klLoss: true },
  ...{ ...passes(1024), updateTokens: 512, longest: 256, rollouts: 32 },
};
const bytesOf = (what: string, change: Partial<PlanInput> = {}): number =>
  planMemory({ ...input, ...change }).rows.find(row => row.what === what)!.bytes;
const peakOf = (change: Partial<PlanInput>): number => planMemory({ ...input, ...change }).peak.bytes;

describe('the plan', () => {
  test('is the sum of its rows, each with its formula, and peaks in the checkpoint', () => {
    const run = { ...input, critic: true, diagnosisTokens: 1024, environments: 1 };
    const { rows, phases: held, peak } = planMemory(run);
    expect(peak).toEqual({ phase: 'checkpoint', bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0) });
    expect(held.map(({ phase }) => phase)).toEqual([...phases]);
    for (const { what, bytes, how } of rows) {
      expect(Number.isInteger(bytes) && bytes > 0, what).toBe(true);
      expect(how, what).toMatch(/\d|measured/);
    }
  });

  test('of an evaluation-only run ends with the rollout', () => {
    const { rows, peak } = planMemory({ ...input, trains: false });
    expect(peak.phase).toBe('rollout');
    expect(rows.map(({ phase }) => phase)).not.toContain('policy update');
  });

  test('contains the sizes of Qwen2.5-0.5B', () => {
    const sizes = { decoder: half(24) };
    expect(bytesOf('base', sizes)).toBe(494_032_768 * 2);
    // 2 · 24 layers · 2 heads · 64 numbers · 4 bytes per token, in 32 episodes and as many rows of the batch
    expect(bytesOf('keys and values', sizes)).toBe(64 * 256 * 24_576);
    const { rows } = planMemory({ ...input, ...sizes, lora: null });
    expect(rows.find(({ what }) => what === 'weights')!.bytes).toBe(494_032_768 * 4);
    expect(rows.find(({ what }) => what === 'optimizer')!.bytes).toBe(494_032_768 * 8);
  });

  test('is smaller when less is kept', () => {
    const activations = 'activations and logits';
    expect(bytesOf(activations, { checkpointed: false })).toBeGreaterThan(bytesOf(activations));
    expect(bytesOf(activations, { updateTokens: 256 })).toBeLessThan(bytesOf(activations));
    const all = peakOf({ lora: null });
    expect(all).toBeGreaterThan(peakOf({}) + 2e9);
    expect(peakOf({ lora: null, moments: { actor: 'int8', critic: 'int8' } })).toBeLessThan(all);
    expect(peakOf({ rolloutQuantization: 'int8', baseQuantization: 'int8' })).toBeLessThan(peakOf({}));
    expect(peakOf({ critic: true })).toBeGreaterThan(peakOf({}));
    expect(peakOf({ rollouts: 8 })).toBeLessThan(peakOf({}));
    expect(peakOf({ scoreTokens: 0 })).toBeLessThan(peakOf({}));
  });

  test('never decreases with one more sequence, also when the logits then use twice as many head chunks', () => {
    const sizes = { ...input, longest: 32, decoder: half(1), reference: false };
    const bytes = Array.from({ length: 16 }, (_, i) => planMemory({ ...sizes, updateTokens: 32 * (i + 1) }).peak.bytes);
    expect(bytes).toEqual([...bytes].sort((a, b) => a - b));
  });

  test('finds the largest pass that fits: one more sequence would not', () => {
    const least = peakOf({ updateTokens: input.longest });
    for (const limit of [least, least + 2 ** 29, least + 2 ** 31]) {
      const tokens = largestMicroBatchTokens(input, limit);
      expect(tokens % input.longest).toBe(0);
      expect(tokens).toBeGreaterThan(0);
      expect(peakOf({ updateTokens: tokens, criticTokens: tokens })).toBeLessThanOrEqual(limit);
      expect(peakOf({ updateTokens: tokens + input.longest })).toBeGreaterThan(limit);
    }
    expect(largestMicroBatchTokens(input, least - 1)).toBe(0);
  });
});
