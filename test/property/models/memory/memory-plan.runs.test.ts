// The memory plan over many models and runs: a larger request never needs less memory, so the largest micro-batch grows
// with memory.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { largestMicroBatchTokens, planMemory } from '../../../../extension/models/memory/memory-plan';
import type { PlanInput } from '../../../../extension/models/memory/plan-input';
import { remedyFor } from '../../../../extension/models/memory/memory-overrides';

const quantization = fc.constantFrom('none', 'int8');
const input: fc.Arbitrary<PlanInput> = fc
  .record({
    family: fc.constantFrom('qwen2', 'qwen3', 'llama'),
    width: fc.integer({ min: 1, max: 8 }),
    layers: fc.integer({ min: 1, max: 2 }),
    vocab: fc.constantFrom(300, 32_000), // the head processes the larger vocabulary in chunks
    tied: fc.boolean(),
    lora: fc.option(fc.record({ rank: fc.integer({ min: 1, max: 16 }), dropout: fc.constantFrom(0, 0.1) })),
    flags: fc.record({
      ...{ checkpointed: fc.boolean(), reference: fc.boolean(), critic: fc.boolean(), klLoss: fc.boolean() },
      lossMode: fc.constantFrom('vanilla', 'gspo', 'cispo'),
    }),
    quantizations: fc.record({ rolloutQuantization: quantization, baseQuantization: quantization }),
    stored: fc.constantFrom('F32', 'F16', 'BF16'),
    longest: fc.integer({ min: 16, max: 200 }),
    episodes: fc.integer({ min: 1, max: 64 }),
  })
  .map(({ family, width, layers, vocab, tied, lora, flags, quantizations, longest, episodes, stored }) => ({
    decoder: parseDecoderConfig(
      {
        ...{ model_type: family, vocab_size: vocab, hidden_size: 32 * width, intermediate_size: 80 * width },
        ...{ num_hidden_layers: layers, num_attention_heads: 2 * width, num_key_value_heads: width },
        ...{ max_position_embeddings: 4096, rms_norm_eps: 1e-6, tie_word_embeddings: tied },
      },
      'config.json',
    ),
    ...flags,
    ...(lora ? quantizations : { rolloutQuantization: 'none', baseQuantization: 'none' }),
    lora: lora && { ...lora, alpha: 16, targets: 'all-linear' },
    moments: { actor: 'float32', critic: 'int8' },
    trains: true,
    stored,
    longest,
    ...{ updateTokens: longest * episodes, criticTokens: longest, scoreTokens: longest, referenceTokens: longest },
    diagnosisTokens: longest * Math.min(episodes, 4),
    environments: 1,
    sharesPrefixes: true,
    answer: Math.ceil(longest / 4),
    promptSharedBy: episodes % 3,
    rollouts: episodes,
  }));
const runs = { numRuns: 10 };

test('one more episode in a pass never needs less memory', () => {
  fc.assert(
    fc.property(input, fc.integer({ min: 1, max: 200 }), (plan, episodes) => {
      const bytes = (n: number): number =>
        planMemory({ ...plan, updateTokens: n * plan.longest, criticTokens: n * plan.longest }).peak.bytes;
      expect(bytes(episodes + 1)).toBeGreaterThanOrEqual(bytes(episodes));
    }),
    runs,
  );
});

test('the largest pass grows with memory, fits, and is maximal', () => {
  fc.assert(
    fc.property(
      input,
      fc.double({ min: 27, max: 36, noNaN: true }),
      fc.double({ min: 0, max: 2, noNaN: true }),
      (plan, log, more) => {
        const limit = 2 ** log;
        const tokens = largestMicroBatchTokens(plan, limit);
        expect(largestMicroBatchTokens(plan, limit * 2 ** more)).toBeGreaterThanOrEqual(tokens);
        const bytes = (n: number): number => planMemory({ ...plan, updateTokens: n, criticTokens: n }).peak.bytes;
        if (tokens > 0) expect(bytes(tokens)).toBeLessThanOrEqual(limit);
        if (tokens + plan.longest <= 2 ** 20) expect(bytes(tokens + plan.longest)).toBeGreaterThan(limit);
      },
    ),
    runs,
  );
});

test('a remedy is reported to fit only if its plan fits', () => {
  fc.assert(
    fc.property(input, fc.double({ min: 0.3, max: 0.99, noNaN: true }), (plan, share) => {
      const limit = planMemory(plan).peak.bytes * share;
      const bounds = { miniBatch: plan.rollouts, shortest: 8, fewerEpisodes: null };
      const { fits, bytes, overrides } = remedyFor(plan, limit, bounds);
      expect(fits).toBe(bytes <= limit);
      expect(new Set(overrides.map(text => text.split('=')[0])).size).toBe(overrides.length);
      if (fits) expect(overrides.length).toBeGreaterThan(0);
    }),
    runs,
  );
});
