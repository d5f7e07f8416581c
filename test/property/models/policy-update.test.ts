// Compares the training graphs with reference losses, for any batch. Every metric of an update equals policyLoss and
// valueLoss on the scored log-probs and values. The gradient equals the directional slope of the reference loss, where
// GSPO and CISPO hold their ratios constant. The seed is fixed, because finite differences are inaccurate near kinks of
// the loss.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aggregationWeights } from '../../../extension/algorithms/loss-aggregation';
import { policyLoss, tokenLosses } from '../../../extension/algorithms/policy-loss';
import { klKinds, lossAggModes, lossModes } from '../../../extension/algorithms/policy-loss-options';
import { valueLoss } from '../../../extension/algorithms/value-loss';
import type { OptimizerOptions, PolicyLossOptions } from '../../../extension/engine/loss-options';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';
import { criticWeights } from '../../../extension/models/decoder/critic';
import type { Weights } from '../../../extension/models/weights/weights';
import { randomWeights, tinyConfig, trainedCritic, trainedPolicy, wholeBatch } from '../../support/small-models';

const still: OptimizerOptions = { lr: 0, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.1, grad_clip: 1 };

// Old and reference log-probs minus the new ones: inside and outside every clip region, never at a kink.
const logRatio = fc.constantFrom(0, 0.1, -0.1, 0.4, -0.4, 1, 1.5, -2, 3, -19, 25, -25);
const distance = fc.constantFrom(0.2, -0.2, 0.5, -0.5, 1.5, -1.5, 5, -4, 14, 25, -25);
// Old values and returns minus the new values. Twice a difference never equals the shift caused by clipping, where the
// clipped and the unclipped error are equal.
const valueShift = fc.constantFrom(0, 0.1, -0.1, 0.8, -0.8, 1.93, -2.21);
const token = fc.record({
  id: fc.nat(tinyConfig.vocabSize - 1),
  on: fc.boolean(),
  logRatio,
  distance,
  valueShift,
  advantage: fc.constantFrom(0, 1, -1, 0.3, -0.3, 2.5, -2.5),
});
const batch = fc
  .array(fc.array(token, { minLength: 2, maxLength: 9 }), { minLength: 1, maxLength: 4 })
  .filter(rows => rows.some(row => row.some(({ on }, i) => on && i > 0)));
type Batch = typeof batch extends fc.Arbitrary<infer T> ? T : never;

const settings: fc.Arbitrary<PolicyLossOptions> = fc.record({
  policy_loss: fc.record({
    loss_mode: fc.constantFrom(...lossModes),
    clip_cov_ratio: fc.constantFrom(0.0002, 0.2),
    clip_cov_lb: fc.constant(0.01),
    kl_cov_ratio: fc.constantFrom(0.0002, 0.2),
    ppo_kl_coef: fc.constantFrom(0.1, 1),
  }),
  selection_seed: fc.nat(9),
  clip_ratio_low: fc.constantFrom(0.2, 0.25),
  clip_ratio_high: fc.constantFrom(0.2, 0.28),
  clip_ratio_c: fc.constantFrom(3, 10),
  entropy_coeff: fc.constantFrom(0, 0.01, -0.5),
  use_kl_loss: fc.boolean(),
  kl_loss_coef: fc.constantFrom(0.001, 0.5),
  kl_loss_type: fc.constantFrom(...klKinds),
  loss_agg_mode: fc.constantFrom(...lossAggModes),
  temperature: fc.constantFrom(0.7, 1, 1.5),
});

const idsAndMask = (rows: Batch): { ids: Int32Array; mask: Uint8Array }[] =>
  rows.map(row => ({
    ids: Int32Array.from(row, ({ id }) => id),
    mask: Uint8Array.from(row, ({ on }, i) => (on && i > 0 ? 1 : 0)),
  }));

/** Weight of each token in the loss, for each sample. */
function shares(samples: readonly { mask: Uint8Array }[], mode: PolicyLossOptions['loss_agg_mode']): Float32Array[] {
  const lengths = samples.map(({ mask }) => mask.reduce((sum, bit) => sum + bit, 0));
  const padded = Math.max(...samples.map(({ mask }) => mask.length));
  const weights = aggregationWeights(lengths, mode, padded);
  return samples.map(({ mask }, row) => new Float32Array(mask.length).fill(weights[row]));
}

const expectClose = (what: string, actual: number, expected: number): void =>
  expect(
    Math.abs(actual - expected) / Math.max(1, Math.abs(expected)),
    `${what}: ${actual} and ${expected}`,
  ).toBeLessThan(2e-5);

/**
 * Compares the numeric slope of `loss` with the slope that the gradient predicts, along a direction that is half
 * gradient and half random.
 */
async function expectSlope(
  weights: Weights,
  gradient: (name: string) => Float32Array,
  loss: () => Promise<number>,
): Promise<void> {
  const stream = new RandomStream(5);
  const slope = weights.like();
  for (const { name } of weights.specs) slope.view(name).set(gradient(name));
  const unit = (x: Float32Array): Float32Array => {
    const norm = Math.hypot(...x);
    return norm > 0 ? x.map(v => v / norm) : x;
  };
  const random = unit(slope.flat.map(() => stream.normal()));
  const direction = unit(unit(slope.flat).map((x, i) => x + random[i]));
  const expected = direction.reduce((sum, x, i) => sum + x * slope.flat[i], 0);
  const before = weights.flat.slice();
  const step = 5e-4;
  const at = async (sign: number): Promise<number> => {
    weights.flat.forEach((_, i, flat) => (flat[i] = before[i] + sign * step * direction[i]));
    return loss();
  };
  const difference = ((await at(1)) - (await at(-1))) / (2 * step);
  weights.flat.set(before);
  const scale = Math.max(0.05, Math.hypot(...slope.flat));
  expect(Math.abs(difference - expected) / scale, `slope ${difference}, gradient ${expected}`).toBeLessThan(2e-2);
}

describe('the policy update', () => {
  it('equals the reference loss, with its metrics and its slope', async () => {
    const weights = randomWeights(tinyConfig, 3);
    const policy = trainedPolicy(tinyConfig, weights);
    const before = weights.flat.slice();
    await fc.assert(
      fc.asyncProperty(batch, settings, async (rows, options) => {
        const samples = idsAndMask(rows);
        const score = async () => policy.score(samples, wholeBatch, options.temperature);
        const { logprobs } = await score();
        const less = (pick: (token: Batch[0][0]) => number): Float32Array[] =>
          rows.map((row, r) => Float32Array.from(row, (token, i) => logprobs[r][i] - pick(token)));
        const old = less(({ logRatio }) => logRatio);
        const reference = less(({ distance }) => distance);
        const advantages = rows.map(row => Float32Array.from(row, ({ advantage }) => advantage));
        const mode = options.policy_loss?.loss_mode;
        const weight = shares(samples, options.loss_agg_mode);
        const scored = async () => {
          const { logprobs, entropies } = await score();
          return samples.map(({ mask }, r) => ({
            mask,
            logprobs: logprobs[r],
            entropies: entropies[r],
            old_logprobs: old[r],
            ref_logprobs: reference[r],
            advantages: advantages[r],
          }));
        };
        const present = await scored();
        const expected = policyLoss(present, options);
        const slopes = tokenLosses(present, options).map(({ slope }) => slope);
        /** The surrogate loss. With constant ratios, it is the sum of log-probs weighted by their initial slopes. */
        const surrogate = (sequences: typeof present): number =>
          mode === 'vanilla'
            ? policyLoss(sequences, options).pg_loss
            : sequences
                .flatMap(({ mask, logprobs }, r) =>
                  Array.from(logprobs, (x, i) => mask[i] * weight[r][i] * slopes[r][i] * x),
                )
                .reduce((sum, x) => sum + x, 0);
        const metrics = await policy.update(
          samples.map((sample, r) => ({
            ...sample,
            old_logprobs: old[r],
            ref_logprobs: reference[r],
            advantages: advantages[r],
            weights: weight[r],
          })),
          wholeBatch,
          options,
          still,
        );
        expect(weights.flat, 'a learning rate of 0').toEqual(before);
        expectClose('pg_loss', metrics.pg_loss, expected.pg_loss);
        expectClose('entropy_loss', metrics.entropy_loss, expected.entropy);
        expectClose('pg_clipfrac', metrics.pg_clipfrac, expected.pg_clipfrac);
        expectClose('pg_clipfrac_lower', metrics.pg_clipfrac_lower, expected.pg_clipfrac_lower);
        expectClose('ppo_kl', metrics.ppo_kl, expected.ppo_kl);
        if (options.use_kl_loss) expectClose('kl_loss', metrics.kl_loss, expected.kl_loss);
        else expect(metrics).not.toHaveProperty('kl_loss');
        const gradient = await policy.bank.readGradient();
        await expectSlope(
          weights,
          name => gradient.view(name),
          async () => {
            const sequences = await scored();
            const { entropy, kl_loss } = policyLoss(sequences, options);
            const kl = options.use_kl_loss ? options.kl_loss_coef * kl_loss : 0;
            return surrogate(sequences) - options.entropy_coeff * entropy + kl;
          },
        );
      }),
      { numRuns: 120, seed: 1 },
    );
  });
});

describe('the critic’s update', () => {
  it('equals the reference loss, with its metrics and its slope', async () => {
    const weights = criticWeights(tinyConfig, randomWeights(tinyConfig, 3), new RandomStream(1));
    weights.view('value_head.weight').forEach((x, i, head) => (head[i] = 500 * x));
    const critic = trainedCritic(tinyConfig, weights);
    await fc.assert(
      fc.asyncProperty(batch, fc.constantFrom(0.25, 0.5), async (rows, cliprange_value) => {
        const samples = idsAndMask(rows);
        const values = await critic.values(samples, wholeBatch);
        const old = rows.map((row, r) => Float32Array.from(row, ({ valueShift }, i) => values[r][i] - valueShift));
        const returns = rows.map((row, r) => Float32Array.from(row, ({ distance }, i) => values[r][i] + distance));
        const plain = async () =>
          valueLoss(
            (await critic.values(samples, wholeBatch)).map((values, r) => ({
              values,
              mask: samples[r].mask,
              old_values: old[r],
              returns: returns[r],
            })),
            cliprange_value,
          );
        const expected = await plain();
        const weight = shares(samples, 'token-mean');
        const metrics = await critic.update(
          samples.map((sample, r) => ({ ...sample, old_values: old[r], returns: returns[r], weights: weight[r] })),
          wholeBatch,
          { cliprange_value, loss_agg_mode: 'token-mean' },
          still,
        );
        for (const name of ['vf_loss', 'vf_clipfrac', 'vpred_mean'] as const)
          expectClose(name, metrics[name], expected[name]);
        const gradient = await critic.bank.readGradient();
        await expectSlope(
          weights,
          name => gradient.view(name),
          async () => (await plain()).vf_loss,
        );
      }),
      { numRuns: 60, seed: 1 },
    );
  });
});
