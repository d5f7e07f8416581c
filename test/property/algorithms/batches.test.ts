// Properties of the rollout filter, the loss weights and the mini-batches.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aggregationWeights } from '../../../extension/algorithms/loss-aggregation';
import { lossAggModes } from '../../../extension/algorithms/policy-loss-options';
import { splitMiniBatches } from '../../../extension/algorithms/mini-batches';
import { policyLoss } from '../../../extension/algorithms/policy-loss';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';
import { selectGroups, selectGroupsByTag } from '../../../extension/algorithms/group-selection';
import { filterTrajectories } from '../../../extension/algorithms/trajectory-filter';

const selection = fc.record({
  rollout_filter_value: fc.double({ min: 0, max: 1.2, noNaN: true }),
  rollout_filter_strategy: fc.constantFrom('top_p' as const, 'top_k' as const, 'top_k_abs' as const, 'min_p' as const),
  rollout_filter_type: fc.constantFrom('largest' as const, 'smallest' as const),
  rollout_filter_include_zero: fc.boolean(),
  rollout_filter_top_p_prob_mode: fc.constantFrom('linear' as const, 'softmax' as const),
  rollout_filter_selection_eps: fc.constantFrom(0, 0.01),
});
const scores = fc.float32Array({ min: -2, max: 12, minLength: 1, maxLength: 24 });

describe('rollout filter', () => {
  it('keeps each group at most once, and only existing groups', () => {
    fc.assert(
      fc.property(scores, selection, (values, options) => {
        const kept = selectGroups(values, options);
        expect(new Set(kept).size).toBe(kept.length);
        for (const group of kept) expect(group >= 0 && group < values.length).toBe(true);
      }),
    );
  });

  it('keeps of each tag what it would keep if there were no other tags', () => {
    fc.assert(
      fc.property(scores, selection, fc.infiniteStream(fc.constantFrom('a', 'b', 'c')), (values, options, stream) => {
        const tags = Array.from(values, () => stream.next().value!);
        const kept = selectGroupsByTag(values, tags, options);
        for (const tag of ['a', 'b', 'c']) {
          const own = [...values.keys()].filter(group => tags[group] === tag);
          const alone = selectGroups(
            Float32Array.from(own, group => values[group]),
            options,
          ).map(index => own[index]);
          expect(kept.filter(group => tags[group] === tag)).toEqual(alone);
        }
        expect(kept.every(group => group >= 0 && group < values.length)).toBe(true);
      }),
    );
  });

  it('never drops a group that ranks above one it keeps', () => {
    fc.assert(
      fc.property(scores, selection, (values, options) => {
        fc.pre(!values.some(Number.isNaN));
        const kept = new Set(selectGroups(values, options));
        const sign = options.rollout_filter_type === 'largest' ? 1 : -1;
        const usable = [...values.keys()].filter(
          group => options.rollout_filter_include_zero || Math.abs(values[group]) > 1e-10,
        );
        for (const out of usable.filter(group => !kept.has(group)))
          for (const group of kept) expect(sign * values[out]).toBeLessThanOrEqual(sign * values[group] + 1e-9);
      }),
    );
  });
});

describe('trajectory filter', () => {
  const episode = fc.record({
    group: fc.integer({ min: 0, max: 3 }),
    reward: fc.constantFrom(-1, 0, 0.5, 1, 2),
    penalty: fc.constantFrom(-0.1, 0),
    success: fc.boolean(),
  });
  const filter = fc.record({
    strategy: fc.constant('top' as const),
    value: fc.double({ min: 0, minExcluded: true, max: 1, noNaN: true }),
    metric: fc.constantFrom('reward' as const, 'score' as const),
    only_successful: fc.boolean(),
  });
  const batches = fc.array(episode, { maxLength: 40 }).chain(episodes =>
    filter.map(options => {
      const values = {
        groups: episodes.map(e => e.group),
        rewards: episodes.map(e => e.reward),
        scores: episodes.map(e => e.reward + e.penalty),
        successes: episodes.map(e => e.success),
      };
      const measured = options.metric === 'reward' ? values.rewards : values.scores;
      return { values, options, measured, kept: filterTrajectories(values, options).kept };
    }),
  );
  const indices = (kept: Uint8Array, bit: number): number[] => [...kept.keys()].filter(i => kept[i] === bit);

  it('keeps the configured share of all episodes, or all eligible episodes if they are fewer', () => {
    fc.assert(
      fc.property(batches, ({ values, options, kept }) => {
        const may = values.successes.filter(success => success || !options.only_successful).length;
        const share = Math.max(1, Math.trunc(options.value * kept.length));
        expect(indices(kept, 1)).toHaveLength(Math.min(may, share));
        if (options.only_successful) for (const i of indices(kept, 1)) expect(values.successes[i]).toBe(true);
      }),
    );
  });

  it('never drops an episode that is better than a kept one, and spreads ties evenly over the groups', () => {
    fc.assert(
      fc.property(batches, ({ values, options, measured, kept }) => {
        const out = indices(kept, 0).filter(i => values.successes[i] || !options.only_successful);
        const equalsKept = (i: number) =>
          indices(kept, 1).filter(k => measured[k] === measured[i] && values.groups[k] === values.groups[i]).length;
        for (const left of out)
          for (const k of indices(kept, 1)) {
            expect(measured[left]).toBeLessThanOrEqual(measured[k]);
            if (measured[left] === measured[k]) expect(equalsKept(k)).toBeLessThanOrEqual(equalsKept(left) + 1);
          }
      }),
    );
  });
});

const lengths = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 60 });

describe('loss weights', () => {
  it('sum to 1 over all sampled tokens in the mean modes', () => {
    fc.assert(
      fc.property(lengths, counts => {
        for (const mode of ['token-mean', 'seq-mean-token-mean'] as const) {
          const weights = aggregationWeights(counts, mode, 200);
          expect(counts.reduce((sum, count, row) => sum + count * weights[row], 0)).toBeCloseTo(1, 6);
        }
      }),
    );
  });

  it('make the loss of a mini-batch the sum over its samples, in every mode', () => {
    const sequence = fc.array(fc.integer({ min: -30, max: 30 }), { minLength: 1, maxLength: 12 }).map(values => ({
      logprobs: Float32Array.from(values, value => value / 50),
      old_logprobs: new Float32Array(values.length),
      advantages: Float32Array.from(values, value => ((value * 7) % 11) / 3),
      mask: Uint8Array.from(values, value => (value % 3 === 0 ? 0 : 1)),
    }));
    fc.assert(
      fc.property(
        fc.array(sequence, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(...lossAggModes),
        (batch, mode) => {
          const settings = {
            clip_ratio_low: 0.2,
            clip_ratio_high: 0.28,
            clip_ratio_c: 3,
            entropy_coeff: 0,
            use_kl_loss: false,
            kl_loss_coef: 0,
            kl_loss_type: 'kl',
            loss_agg_mode: mode,
          } as const;
          const counts = batch.map(({ mask }) => mask.reduce((sum, bit) => sum + bit, 0));
          const padded = 12;
          const weights = aggregationWeights(counts, mode, padded);
          const shares = batch.map(
            (sequence, row) =>
              weights[row] * policyLoss([sequence], { ...settings, loss_agg_mode: 'seq-mean-token-sum' }).loss,
          );
          expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(
            policyLoss(batch, settings, padded).loss,
            6,
          );
        },
      ),
    );
  });
});

describe('mini-batches', () => {
  it('contain every sample exactly once, and are full except for the last', () => {
    fc.assert(
      fc.property(lengths, fc.integer({ min: 1, max: 40 }), fc.integer(), (sizes, miniBatch, seed) => {
        const minis = splitMiniBatches(sizes.length, miniBatch, new RandomStream(seed));
        expect(minis.slice(0, -1).every(mini => mini.length === miniBatch)).toBe(true);
        expect(minis.at(-1)!.length).toBeLessThanOrEqual(miniBatch);
        const seen = minis.flatMap(mini => [...mini]);
        expect(seen.toSorted((a, b) => a - b)).toEqual([...sizes.keys()]);
      }),
    );
  });
});
