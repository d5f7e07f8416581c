// GAE over turns against hand-computed vectors: with the value of the first and of the last token of a turn, with gaps,
// and equal for turns that are one sample or several.
import { describe, expect, it } from 'vitest';
import { turnGae, turnGaeAdvantages } from '../../../extension/algorithms/turn-gae';
import { expectNumbers } from './expect-numbers';

// Two turns: tokens 0, 1 and 3 to 5; token 2 is an observation. Rewards .5 (as .2 + .3) and 1.
const episode = {
  rewards: Float32Array.of(0.2, 0.3, 0, 0, 0, 1),
  values: Float32Array.of(0.1, 0.2, 9, 0.3, 0.4, 0.5),
  mask: Uint8Array.of(1, 1, 0, 1, 1, 1),
  turnEnds: [1, 5],
};
const options = { gamma: 0.9, lam: 0.5 };

describe('GAE over turns', () => {
  it('from the first tokens (no_concat_gae)', () => {
    // A₂ = 1 − .3 = .7; A₁ = .5 + .9·.3 − .1 + .45·.7 = .985
    const { advantages, returns, targets } = turnGae(episode, { ...options, value: 'first' });
    expectNumbers(advantages, [0.985, 0.985, 0, 0.7, 0.7, 0.7]);
    expectNumbers(returns, [1.085, 0, 0, 1, 0, 0]);
    expect([...targets]).toEqual([1, 0, 0, 1, 0, 0]);
  });

  it('from the last tokens (turn_wise_gae, no_concat_gae_last)', () => {
    // A₂ = 1 − .5 = .5; A₁ = .5 + .9·.5 − .2 + .45·.5 = .975
    const { advantages, returns, targets } = turnGae(episode, { ...options, value: 'last' });
    expectNumbers(advantages, [0.975, 0.975, 0, 0.5, 0.5, 0.5]);
    expectNumbers(returns, [0, 1.175, 0, 0, 0, 1]);
    expect([...targets]).toEqual([0, 1, 0, 0, 0, 1]);
  });

  it('of a turn with reward 0 still ends a turn', () => {
    const silent = { ...episode, rewards: Float32Array.of(0, 0, 0, 0, 0, 1) };
    // A₁ = 0 + .27 − .1 + .315
    expectNumbers(turnGae(silent, { ...options, value: 'first' }).advantages, [0.485, 0.485, 0, 0.7, 0.7, 0.7]);
  });

  it('passes on the reward of a turn without trained tokens', () => {
    const skipped = { ...episode, mask: Uint8Array.of(1, 1, 0, 0, 0, 0) };
    // A₂ = 1, V₂ = 0; A₁ = .5 + 0 − .1 + .45
    const { advantages, targets } = turnGae(skipped, { ...options, value: 'first' });
    expectNumbers(advantages, [0.85, 0.85, 0, 0, 0, 0]);
    expect([...targets]).toEqual([1, 0, 0, 0, 0, 0]);
  });

  it('without discount and critic, gives each turn its return-to-go', () => {
    const plain = { ...episode, values: new Float32Array(6) };
    expectNumbers(turnGae(plain, { gamma: 1, lam: 1, value: 'last' }).advantages, [1.5, 1.5, 0, 1, 1, 1]);
  });

  it('whitens over the tokens of the mask', () => {
    const { advantages } = turnGaeAdvantages([episode], { ...options, value: 'first' });
    const sampled = [0, 1, 3, 4, 5].map(token => advantages[0][token]);
    expect(sampled.reduce((sum, a) => sum + a, 0)).toBeCloseTo(0, 5);
    expect(sampled.reduce((sum, a) => sum + a * a, 0) / 4).toBeCloseTo(1, 4); // Bessel's correction, as verl
    expect(advantages[0][2]).toBe(0);
  });
});
