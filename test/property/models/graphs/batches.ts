// Random batches and budgets for tests of packing.
import fc from 'fast-check';
import type { PassBudget } from '../../../../extension/engine/training-samples';
import type { PassCosts } from '../../../../extension/models/graphs/pass-plan';
import type { DecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { tinyConfig } from '../../../support/small-models';

/** Two layers of two key heads with two query heads each. */
export const groupedConfig: DecoderConfig = { ...tinyConfig, layers: 2, heads: 4, kvHeads: 2 };

/**
 * Groups of samples with a common prefix. The vocabulary is so small that unrelated samples share prefixes too; some
 * samples are equal.
 */
const token = fc.nat(2);
const group = fc
  .record({
    prefix: fc.array(token, { maxLength: 20 }),
    ends: fc.array(fc.array(token, { minLength: 1, maxLength: 7 }), { minLength: 1, maxLength: 5 }),
  })
  .map(({ prefix, ends }) => ends.map(end => Int32Array.from([...prefix, ...end])));
export const batch = fc
  .array(group, { minLength: 1, maxLength: 4 })
  .chain(groups => fc.shuffledSubarray(groups.flat(), { minLength: groups.flat().length }))
  .map(all => all.map(ids => ({ ids })));
export const budget: fc.Arbitrary<PassBudget> = fc.record({
  maxTokens: fc.oneof(fc.integer({ min: 1, max: 120 }), fc.constant(Infinity)),
  maxRows: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constant(Infinity)),
});
/** Costs with which passes are cut at every chance, never, or in between. */
export const costs: fc.Arbitrary<PassCosts> = fc.record({
  token: fc.constantFrom(0, 1, 50, 1e6),
  pass: fc.constantFrom(0, 20, 500, 1e6),
});
