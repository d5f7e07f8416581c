// GAE over an episode with an observation gap, with two masks, bi-level GAE, and the critic's loss, against
// hand-computed vectors.
import { describe, expect, it } from 'vitest';
import { biLevelAdvantages, biLevelGaeAdvantages, nonZeroRewards } from '../../../extension/algorithms/bi-level-gae';
import { generalizedAdvantages, withReturns } from '../../../extension/algorithms/gae';
import type { GaeOptions, ValuedSequence } from '../../../extension/algorithms/gae';
import { maskedGaeAdvantages } from '../../../extension/algorithms/masked-gae';
import { valueLoss } from '../../../extension/algorithms/value-loss';
import { expectNumbers } from './expect-numbers';

const gaeAdvantages = (sequences: readonly ValuedSequence[], options: GaeOptions) =>
  withReturns(
    sequences,
    sequences.map(sequence => generalizedAdvantages(sequence, options)),
  );

describe('GAE', () => {
  const episode = {
    rewards: Float32Array.of(0, 0, 0, 0, 0, 0, 0, 1),
    values: Float32Array.of(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    mask: Uint8Array.of(1, 1, 1, 0, 0, 1, 1, 1),
  };

  it('carries value and advantage over unsampled tokens', () => {
    expectNumbers(
      generalizedAdvantages(episode, { gamma: 1, lam: 0.95 }),
      [0.787694, 0.723889, 0.656725, 0.3755, 0.3755, 0.3755, 0.29, 0.2],
    );
    expectNumbers(generalizedAdvantages(episode, { gamma: 1, lam: 1 }), [0.9, 0.8, 0.7, 0.4, 0.4, 0.4, 0.3, 0.2]);
  });

  it('discounts the next value and the running advantage', () => {
    const sequence = {
      rewards: Float32Array.of(0, 1),
      values: Float32Array.of(0.2, 0.5),
      mask: Uint8Array.of(1, 1),
    };
    // δ₁ = 1 − .5 = .5; δ₀ = .5·.5 − .2 = .05; A₀ = .05 + .5·.8·.5
    expectNumbers(generalizedAdvantages(sequence, { gamma: 0.5, lam: 0.8 }), [0.25, 0.5]);
  });

  it('whitens over the sampled tokens and returns targets for the critic', () => {
    const { advantages, returns } = gaeAdvantages([episode], { gamma: 1, lam: 1 });
    expectNumbers(advantages[0], [1.2149, 0.8678, 0.5207, 0, 0, -0.5207, -0.8678, -1.2149], 4);
    expectNumbers(returns[0], [1, 1, 1, 0, 0, 1, 1, 1]);
  });

  it('does not whiten a single sampled token', () => {
    const lone = { rewards: Float32Array.of(5), values: Float32Array.of(1), mask: Uint8Array.of(1) };
    expect([...gaeAdvantages([lone], { gamma: 1, lam: 1 }).advantages[0]]).toEqual([0]);
  });
});

describe('bi-level GAE', () => {
  const rewards = Float32Array.of(0, 0, 0, 0, 1, 0, 0, 0, 0, 1);
  const values = Float32Array.from({ length: 10 }, (_, token) => (token + 1) / 10);
  const turnEnds = [4, 9];

  it('estimates over turns, then over the tokens of each turn', () => {
    const sequence = { rewards, values, turnEnds, mask: new Uint8Array(10).fill(1) };
    const options = { gamma: 1, lam: 1, high_level_gamma: 0.95 };
    expectNumbers(biLevelAdvantages(sequence, options), [1.85, 1.75, 1.65, 1.55, 1.45, 0.4, 0.3, 0.2, 0.1, 0]);
    expectNumbers(biLevelGaeAdvantages([sequence], options).returns[0], [1.95, 1.95, 1.95, 1.95, 1.95, 1, 1, 1, 1, 1]);
  });

  it('skips observation tokens', () => {
    const sequence = { rewards, values, turnEnds, mask: Uint8Array.of(1, 1, 1, 1, 1, 0, 0, 1, 1, 1) };
    expectNumbers(
      biLevelAdvantages(sequence, { gamma: 1, lam: 0.95, high_level_gamma: 0.95 }),
      [1.552022, 1.528444, 1.503625, 1.4775, 1.45, 0, 0, 0.195, 0.1, 0],
    );
  });

  it('treats a turn with reward 0 as a turn, and an episode without reward as an episode', () => {
    const sequence = {
      rewards: new Float32Array(4),
      values: Float32Array.of(0.5, 0.5, 0.5, 0.5),
      mask: new Uint8Array(4).fill(1),
      turnEnds: [1, 3],
    };
    // last turn: δ = 0 − .5; first turn: δ = .95·.5 − .5 = −.025, plus .95·(−.5) = −.5
    expectNumbers(biLevelAdvantages(sequence, { gamma: 1, lam: 1, high_level_gamma: 0.95 }), [-0.5, -0.5, -0.5, -0.5]);
  });
});

describe('bi-level GAE between turns', () => {
  const mask = Uint8Array.of(1, 1, 0, 1, 1);
  const rewards = Float32Array.of(0, 1, 0, 0, 2);
  const values = Float32Array.of(0.1, 0.2, 9, 0.4, 0.8);
  const sequence = { rewards, values, mask, turnEnds: [1, 4] };

  it('has a separate λ', () => {
    const options = { gamma: 1, lam: 0.5, high_level_gamma: 0.9, high_level_lam: 1 };
    // turn 2: Â = 2 − .8 = 1.2; turn 1: Â = 1 + .9·.8 − .2 + .9·1.2 = 2.6, its return 2.8
    // tokens: A₄ = 1.2, A₃ = .8 − .4 + .5·1.2 = 1; A₁ = 2.8 − .2 = 2.6, A₀ = .2 − .1 + .5·2.6 = 1.4
    expectNumbers(biLevelAdvantages(sequence, options), [1.4, 2.6, 0, 1, 1.2]);
    const tied = biLevelAdvantages(sequence, { ...options, high_level_lam: undefined });
    // Â₁ = 1 + .72 − .2 + .45·1.2 = 2.06
    expectNumbers(tied, [0.1 + 0.5 * 2.06, 2.06, 0, 1, 1.2]);
  });

  it('reads a turn’s value at its first token, as VAGEN does', () => {
    const options = { gamma: 1, lam: 1, high_level_gamma: 0.9, turn_value: 'start' } as const;
    // turn 2: Â = 2 − .4 = 1.6, return 2; turn 1: Â = 1 + .9·.4 − .1 + .9·1.6 = 2.7, return 2.8
    expectNumbers(biLevelAdvantages(sequence, options), [2.7, 2.6, 0, 1.6, 1.2]);
  });

  it('continues past the last turn end, which RAGEN’s rule does not reach', () => {
    expect(nonZeroRewards(Float32Array.of(0, 1, 0, -0.5, 0))).toEqual([1, 3]);
    const options = { gamma: 1, lam: 1, high_level_gamma: 0.95 };
    const late = { ...sequence, rewards: Float32Array.of(0, 1, 0, 0, 0) };
    // tokens 3 and 4 follow the only reward: no reward remains, so −V each
    expectNumbers(
      biLevelAdvantages({ ...late, turnEnds: nonZeroRewards(late.rewards) }, options),
      [0.9, 0.8, 0, -0.4, -0.8],
    );
    const nothing = { ...sequence, rewards: new Float32Array(5), turnEnds: [] };
    expectNumbers(biLevelAdvantages(nothing, options), [-0.1, -0.2, 0, -0.4, -0.8]);
  });
});

describe('GAE with two masks', () => {
  // tokens:               marker action marker | observation | marker action marker(end)
  const mask = Uint8Array.of(1, 1, 1, 0, 1, 1, 1);
  const advantageMask = Uint8Array.of(0, 1, 0, 0, 0, 1, 0);
  const values = Float32Array.of(9, 0.5, 9, 9, 9, 1, 9);

  it('estimates over the advantage mask, carries over gaps, and assigns rewards in gaps to the token before', () => {
    const rewards = Float32Array.of(7, 0, 1, 0, 0, 0, 3);
    const { advantages, returns } = maskedGaeAdvantages([{ rewards, values, mask, advantageMask }], {
      gamma: 1,
      lam: 0.5,
    });
    // A₅ = 3 − 1 = 2; A₁ = 1 + 1 − .5 + .5·2 = 2.5; whitened: mean 2.25, unbiased deviation .25·√2
    expectNumbers(returns[0], [0, 3, 0, 0, 0, 3, 0]);
    const unit = Math.SQRT1_2;
    expectNumbers(advantages[0], [unit, unit, -unit, 0, -unit, -unit, 0], 5);
  });

  it('equals plain GAE when both masks are equal', () => {
    const sequence = { rewards: Float32Array.of(0, 1, 0, 0, 0, 0, 3), values, mask };
    const options = { gamma: 0.9, lam: 0.8 };
    const two = maskedGaeAdvantages([{ ...sequence, advantageMask: mask }], options);
    const plain = gaeAdvantages([sequence], options);
    expectNumbers(two.advantages[0], [...plain.advantages[0]]);
    expectNumbers(two.returns[0], [...plain.returns[0]]);
  });
});

describe('value loss', () => {
  it('takes the larger of the plain and the clipped error', () => {
    const loss = valueLoss(
      [
        {
          values: Float32Array.of(2, 9, 1),
          old_values: Float32Array.of(1, 0, 1),
          returns: Float32Array.of(2, 0, 0),
          mask: Uint8Array.of(1, 0, 1),
        },
      ],
      0.5,
    );
    // token 0: plain 0, clipped at 1.5 → .25; token 2: 1 both ways; the masked token is not counted
    expect(loss.vf_loss).toBeCloseTo(0.5 * ((0.25 + 1) / 2), 6);
    expect(loss.vf_clipfrac).toBeCloseTo(0.5, 6);
    expect(loss.vpred_mean).toBeCloseTo(1.5, 6);
  });
});
