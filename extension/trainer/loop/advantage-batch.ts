// The input of the advantage estimators, and the conversion of their output to one advantage per token. The input has
// scores and groups per sample (with roles, a group contains the samples of one role), and sequences with rewards and
// values. There is one sequence per sample or, with `agent_proxy.use_turn_scores`, one sequence per complete episode.
// The built-in estimators are in built-in-estimators.ts.
import type { Estimate, EstimatorBatch, EstimatorSettings } from '../../../envs/api/plugins/estimator';
import { spreadOverTokens } from '../../algorithms/token-sequences';
import { spreadOverTurns } from '../../algorithms/turn-advantages';
import type { RunConfig } from '../config/schema';
import { deriveSeed } from '../rollout/seeds';
import { joinedSequences, samplesByEpisode, splitRows } from './training-batch';
import type { BatchSample } from './training-batch';

/** The input of an estimator, and for each of its sequences the indices of the samples that it contains. */
export interface AdvantageBatch extends EstimatorBatch {
  rows: readonly (readonly number[])[];
}

/** Advantages and, if a critic is trained, its targets; one array per sample. */
export interface TokenAdvantages {
  advantages: Float32Array[];
  returns?: Float32Array[];
  /** 1 at tokens that have a target; absent if all tokens for which advantages are estimated have one. */
  targets?: Uint8Array[];
}

/** Values per token of each sample, and the greedy score of each sample's group. */
type SampleValues = Record<'rewards' | 'values' | 'logprobs', readonly Float32Array[]> & {
  squares?: readonly Float32Array[];
  baselines: readonly number[];
};

/** Converts samples, rewards, values and baselines to the input of advantage estimators. */
export function advantageBatch(
  samples: readonly BatchSample[],
  { rewards, values, logprobs, squares, baselines }: SampleValues,
  { agent_proxy }: RunConfig,
): AdvantageBatch {
  const sequences = samples.map(({ group, mask, estimated: advantageMask, turnEnds }, i) => ({
    group,
    baseline: baselines[i],
    rewards: rewards[i],
    values: values[i],
    logprobs: logprobs[i],
    squares: squares?.[i] ?? new Float32Array(mask.length),
    mask,
    advantageMask,
    turnEnds,
  }));
  const rows = agent_proxy.use_turn_scores ? samplesByEpisode(samples) : samples.map((_, i) => [i]);
  return {
    scores: Float64Array.from(rewards, sum),
    groups: Int32Array.from(samples, s => s.group),
    episodes: Int32Array.from(samples, s => s.countsAs),
    masks: samples.map(s => s.mask),
    sequences: joinedSequences(sequences, rows),
    rows,
  };
}

/** Returns the settings of a step's estimator. */
export function estimatorSettings({ algorithm, workbench, seed }: RunConfig, step: number): EstimatorSettings {
  const { gamma, lam, high_level_gamma, norm_adv_by_std_in_grpo } = algorithm;
  return {
    ...{ gamma, lam, high_level_gamma, norm_adv_by_std_in_grpo },
    high_level_lam: workbench.high_level_lam ?? lam,
    turn_value: workbench.turn_value,
    turn_gae: workbench.turn_gae,
    compat_ragen: workbench.compat === 'ragen',
    step,
    seed: deriveSeed('estimator', seed.train, step),
  };
}

/** Converts an estimate to one advantage per token of each sample. */
export function tokenAdvantages({ masks, rows, sequences }: AdvantageBatch, estimate: Estimate): TokenAdvantages {
  if ('samples' in estimate) return { advantages: spreadOverTokens(estimate.samples, masks) };
  const lengths = masks.map(mask => mask.length);
  if ('turns' in estimate) {
    const { turns } = estimate;
    const spread = sequences.map(({ turnEnds, mask }, row) => spreadOverTurns(turns[row], turnEnds, mask));
    return { advantages: splitRows(spread, rows, lengths) };
  }
  const { tokens, returns, targets } = estimate;
  return {
    advantages: splitRows(tokens, rows, lengths),
    ...(returns && { returns: splitRows(returns, rows, lengths) }),
    ...(targets && { targets: splitRows(targets, rows, lengths) }),
  };
}

/** Returns the sum of the elements of a row. */
export const sum = (row: Float32Array): number => row.reduce((total, x) => total + x, 0);
