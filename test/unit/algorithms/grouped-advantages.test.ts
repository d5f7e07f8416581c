// GRPO, Dr.GRPO, BRPO, ARPO, turn-wise GRPO, RLOO, ReMax and the group baseline of REINFORCE++ against hand-computed
// vectors.
import { describe, expect, it } from 'vitest';
import { arpoAdvantages, brpoAdvantages, grpoAdvantages } from '../../../extension/algorithms/grpo';
import {
  discountedReturns,
  reinforcePlusPlusAdvantages,
  reinforcePlusPlusBaselineAdvantages,
} from '../../../extension/algorithms/reinforce';
import { remaxAdvantages } from '../../../extension/algorithms/remax';
import { rlooAdvantages } from '../../../extension/algorithms/rloo';
import { spreadOverTurns, turnGrpoAdvantages, turnReturns } from '../../../extension/algorithms/turn-advantages';
import { expectNumbers } from './expect-numbers';

const grpo = { norm_adv_by_std_in_grpo: true };
const drGrpo = { norm_adv_by_std_in_grpo: false };
const oneGroup = (...scores: number[]) => ({ scores, groups: scores.map(() => 7) });

describe('GRPO', () => {
  it('normalises by the unbiased standard deviation of the group', () => {
    expectNumbers(grpoAdvantages(oneGroup(1, 0, 0, 1), grpo), [0.866024, -0.866024, -0.866024, 0.866024]);
    expectNumbers(grpoAdvantages(oneGroup(10.9, -1, -1, -1), grpo), [1.5, -0.5, -0.5, -0.5]);
  });

  it('gives one winner among sixteen 3.75 and the others −0.25', () => {
    const advantages = grpoAdvantages(oneGroup(10.9, ...new Array<number>(15).fill(-1)), grpo);
    expectNumbers(advantages, [3.75, ...new Array<number>(15).fill(-0.25)]);
  });

  it('subtracts only the mean in Dr.GRPO', () => {
    expectNumbers(grpoAdvantages(oneGroup(1, 0, 0, 1), drGrpo), [0.5, -0.5, -0.5, 0.5]);
  });

  it('gives exact zeros to a group of equal scores, even when the mean rounds', () => {
    expect([...grpoAdvantages(oneGroup(0.1, 0.1, 0.1), grpo)]).toEqual([0, 0, 0]);
  });

  it('leaves a group of one its raw score', () => {
    expectNumbers(grpoAdvantages({ scores: [2.5, 1, 0], groups: [1, 2, 2] }, grpo), [
      2.5 / (1 + 1e-6),
      0.707106,
      -0.707106,
    ]);
  });

  it('keeps groups apart when their samples are interleaved', () => {
    expectNumbers(grpoAdvantages({ scores: [1, 10, 0, 30], groups: [0, 1, 0, 1] }, drGrpo), [0.5, -10, -0.5, 10]);
  });

  it('counts an episode once however many samples it has', () => {
    const perTurn = { scores: [1, 1, 1, 0], groups: [0, 0, 0, 0], episodes: [0, 0, 0, 1] };
    expectNumbers(grpoAdvantages(perTurn, drGrpo), [0.5, 0.5, 0.5, -0.5]);
    expectNumbers(grpoAdvantages({ ...perTurn, episodes: undefined }, drGrpo), [0.25, 0.25, 0.25, -0.75]);
  });
});

describe('other groupings', () => {
  const scores = [1, 0, 0, 1];
  it('use the whole batch for BRPO and each sample for ARPO', () => {
    expectNumbers(brpoAdvantages({ scores }, grpo), [0.866024, -0.866024, -0.866024, 0.866024]);
    expectNumbers(brpoAdvantages({ scores }, drGrpo), [0.5, -0.5, -0.5, 0.5]);
    expectNumbers(brpoAdvantages({ scores: [1, 1, 0], episodes: [0, 0, 1] }, drGrpo), [0.5, 0.5, -0.5]);
    expectNumbers(arpoAdvantages([10.9, -1]), [10.9, -1]);
  });
});

describe('turn-wise GRPO', () => {
  it('scores a turn by its return-to-go', () => {
    expectNumbers(turnReturns([1, 0, 2], 0.5), [1.5, 1, 2]);
    const batch = { rewards: [[1, 0, 2], [0, 0.5], [4]], groups: [3, 3, 8] };
    const [first, second, alone] = turnGrpoAdvantages(batch, { ...drGrpo, high_level_gamma: 1 });
    // group 3: returns 3, 2, 2 and .5, .5: mean 1.6
    expectNumbers(first, [1.4, 0.4, 0.4]);
    expectNumbers(second, [-1.1, -1.1]);
    expectNumbers(alone, [4]);
    const scaled = turnGrpoAdvantages(batch, { ...grpo, high_level_gamma: 1 });
    const std = Math.sqrt((1.4 ** 2 + 2 * 0.4 ** 2 + 2 * 1.1 ** 2) / 4);
    expectNumbers(scaled[0], [1.4 / std, 0.4 / std, 0.4 / std]);
  });

  it('equals GRPO for episodes of equal length with a final reward', () => {
    const rewards = [1, 0, 0, 1].map(score => [0, 0, score]);
    const turns = turnGrpoAdvantages({ rewards, groups: [0, 0, 0, 0] }, { ...drGrpo, high_level_gamma: 1 });
    turns.forEach((own, episode) => expectNumbers(own, new Array<number>(3).fill([0.5, -0.5, -0.5, 0.5][episode])));
  });

  it('assigns a turn’s advantage to its sampled tokens, and 0 to tokens after the last turn', () => {
    expectNumbers(spreadOverTurns([2, -1], [1, 4], Uint8Array.of(1, 1, 0, 1, 1, 1)), [2, 2, 0, -1, -1, 0]);
  });
});

describe('RLOO', () => {
  it('subtracts the mean of the other samples', () => {
    expectNumbers(rlooAdvantages(oneGroup(1, 0, 0, 1)), [2 / 3, -2 / 3, -2 / 3, 2 / 3]);
  });

  it('leaves a group of one its raw score', () => {
    expectNumbers(rlooAdvantages(oneGroup(-0.3)), [-0.3]);
  });
});

describe('REINFORCE++', () => {
  const rewards = Float32Array.of(0, 0.5, 0, 0, 1);
  const mask = Uint8Array.of(1, 1, 0, 1, 1);

  it('discounts over sampled tokens only and continues across observations', () => {
    expectNumbers(discountedReturns({ rewards, mask }, 0.5), [0.375, 0.75, 0, 0.5, 1]);
  });

  it('whitens the returns over all sampled tokens of the batch', () => {
    const [first, second] = reinforcePlusPlusAdvantages(
      [
        { rewards: Float32Array.of(1, 0), mask: Uint8Array.of(1, 0) },
        { rewards: Float32Array.of(0, 3), mask: Uint8Array.of(0, 1) },
      ],
      1,
    );
    expectNumbers(first, [-Math.SQRT1_2, 0]); // values 1 and 3: mean 2, unbiased standard deviation √2
    expectNumbers(second, [0, Math.SQRT1_2]);
  });

  it('weights a sample by its tokens when it whitens with a group baseline', () => {
    const [long, short] = reinforcePlusPlusBaselineAdvantages({ scores: [1, 0], groups: [0, 0] }, [
      Uint8Array.of(1, 1, 1),
      Uint8Array.of(0, 0, 1),
    ]);
    // centred ±0.5 over tokens [.5,.5,.5,−.5]: mean .25, unbiased standard deviation .5
    expectNumbers(long, [0.5, 0.5, 0.5]);
    expectNumbers(short, [0, 0, -1.5]);
  });
});

// Expected values from verl's compute_remax_outcome_advantage: sum of rewards · mask from each token to the end, minus
// baseline · mask.
describe('remax', () => {
  const rows = (...all: [rewards: number[], mask: number[]][]) =>
    all.map(([rewards, mask]) => ({ rewards: Float32Array.from(rewards), mask: Uint8Array.from(mask) }));

  it('subtracts the score of the greedy rollout from the return', () => {
    const [first, second] = remaxAdvantages(
      rows(
        [
          [1, 2, 3],
          [1, 1, 1],
        ],
        [
          [4, 5, 6],
          [1, 1, 0],
        ],
      ),
      [6, 15],
    );
    expectNumbers(first, [0, -1, -3]);
    expectNumbers(second, [-6, -10, 0]);
  });

  it('carries the final score across the gaps between turns, and leaves the gaps at 0', () => {
    const [row] = remaxAdvantages(
      rows([
        [0, 0, 0, 0, 0, 10.9],
        [0, 1, 1, 0, 1, 1],
      ]),
      [-0.1],
    );
    expectNumbers(row, [0, 11, 11, 0, 11, 11]);
  });

  it('gives no advantage to a sample that equals the greedy rollout', () => {
    const [row] = remaxAdvantages(
      rows([
        [0, 0.5],
        [1, 1],
      ]),
      [0.5],
    );
    expect([...row]).toEqual([0, 0]);
  });
});
