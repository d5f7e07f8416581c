// Advantage estimators against verl's own code (test/golden/make/verl_algorithms.py): outcome rewards for the estimators
// of groups, rewards and gaps between turns for those of tokens.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { grpoAdvantages } from '../../../extension/algorithms/grpo';
import { opoAdvantages } from '../../../extension/algorithms/opo';
import { optimalTokenBaselineAdvantages } from '../../../extension/algorithms/optimal-token-baseline';
import {
  reinforcePlusPlusAdvantages,
  reinforcePlusPlusBaselineAdvantages,
} from '../../../extension/algorithms/reinforce';
import { remaxAdvantages } from '../../../extension/algorithms/remax';
import { rlooAdvantages } from '../../../extension/algorithms/rloo';
import { spreadOverTokens } from '../../../extension/algorithms/token-sequences';

const table = z.array(z.array(z.number()));
const golden = z
  .object({
    groups: z.array(z.number()),
    outcome: table,
    mask: table,
    dense: table,
    gapped: table,
    baselines: z.array(z.number()),
    logprobs: table,
    squares: table,
    estimators: z.record(z.string(), table),
  })
  .parse(JSON.parse(readFileSync('test/golden/verl-algorithms.json', 'utf8')));
const { groups } = golden;
const rows = (rewards: number[][], masks: number[][]) =>
  rewards.map((each, row) => ({ rewards: Float32Array.from(each), mask: Uint8Array.from(masks[row]) }));
const outcome = rows(golden.outcome, golden.mask);
const dense = rows(golden.dense, golden.gapped);
const masks = outcome.map(({ mask }) => mask);
const batch = { groups, scores: golden.outcome.map(row => row.reduce((sum, value) => sum + value, 0)) };
const spread = (samples: ArrayLike<number>): Float32Array[] => spreadOverTokens(samples, masks);

const ofTokens = {
  remax: remaxAdvantages(dense, golden.baselines),
  tir_optimal_token_baseline: optimalTokenBaselineAdvantages(
    dense.map((row, i) => ({ ...row, logprobs: golden.logprobs[i], squares: golden.squares[i] })),
    groups,
  ),
};

test.each<[name: string, ours: Float32Array[]]>([
  ['grpo', spread(grpoAdvantages(batch, { norm_adv_by_std_in_grpo: true }))],
  ['dr_grpo', spread(grpoAdvantages(batch, { norm_adv_by_std_in_grpo: false }))],
  ['rloo', spread(rlooAdvantages(batch))],
  ['opo', spread(opoAdvantages(batch, masks))],
  ['reinforce_plus_plus', reinforcePlusPlusAdvantages(outcome, 0.9)],
  ['reinforce_plus_plus_baseline', reinforcePlusPlusBaselineAdvantages(batch, masks)],
  ...Object.entries(ofTokens),
])('%s equals verl', (name, ours) => {
  const expected = golden.estimators[name];
  expect(new Set(expected.flat()).size).toBeGreaterThan(4);
  const sampled = name in ofTokens ? golden.gapped : golden.mask;
  ours.forEach((row, i) =>
    // verl's remax has returns at tokens that are not sampled, which its losses leave out; ours are 0
    row.forEach((value, token) =>
      expect(value, `${i}, ${token}`).toBeCloseTo(sampled[i][token] * expected[i][token], 5),
    ),
  );
});
