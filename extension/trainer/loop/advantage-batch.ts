// The batch as advantage estimators see it: scores and groups per sample, and sequences with rewards and values, one
// row per sample or, with turn scores, one row per complete episode.
import { spreadOverTurns } from '../../algorithms/turn-advantages';
import type { RunConfig } from '../config/schema';
import { overJoined, samplesByEpisode } from './training-batch';
import type { BatchSample, EstimatedSequence } from './training-batch';

/** The batch as estimators see it. */
export interface AdvantageBatch {
  /** Per sample: sum of its rewards, prompt group, and episode; an episode counts once in its group's statistics. */
  scores: readonly number[];
  groups: readonly number[];
  episodes: readonly number[];
  masks: readonly Uint8Array[];
  /** Score of the greedy episode of each sample's group; 0 if the estimator needs none. */
  baselines: readonly number[];
  /** For estimators over sequences: one row per sample, or with turn scores one row per complete episode. */
  ahead(estimate: (rows: EstimatedSequence[]) => Estimate): Estimate;
  /** For estimators with one advantage per turn. */
  byTurn(estimate: (turns: { rewards: number[][]; groups: number[] }) => Float32Array[]): Float32Array[];
}

interface Estimate {
  advantages: Float32Array[];
  /** The critic's targets. */
  returns?: Float32Array[];
}
/** Computes a batch's advantages, and the critic's targets where there is a critic. */
export type Estimator = (batch: AdvantageBatch, config: RunConfig) => Estimate;
/** Name of an estimator in the table of train.ts. */
export type EstimatorName = RunConfig['algorithm']['adv_estimator'] | 'gae_by_turn' | 'grpo_by_turn';

/** The configured estimator. */
export function estimatorName({ algorithm, agent_proxy }: RunConfig): EstimatorName {
  const { adv_estimator: name, bi_level_gae } = algorithm;
  if (name === 'gae') return bi_level_gae ? 'gae_by_turn' : 'gae';
  return name === 'grpo' && agent_proxy.use_turn_scores ? 'grpo_by_turn' : name;
}

/** The samples with their rewards, values and baselines, as estimators see them. */
export function advantageBatch(
  samples: readonly BatchSample[],
  {
    rewards,
    values,
    baselines,
  }: Record<'rewards' | 'values', readonly Float32Array[]> & Pick<AdvantageBatch, 'baselines'>,
  { agent_proxy }: RunConfig,
): AdvantageBatch {
  const sequences = samples.map(({ mask, estimated: advantageMask, turnEnds }, i) => {
    return {
      rewards: rewards[i],
      values: values[i],
      mask,
      advantageMask,
      turnEnds,
    };
  });
  const episodes = samplesByEpisode(samples);
  return {
    scores: rewards.map(sum),
    groups: samples.map(s => s.episode.group_id),
    episodes: samples.map(s => s.countsAs),
    masks: samples.map(s => s.mask),
    baselines,
    ahead: estimate =>
      overJoined(sequences, agent_proxy.use_turn_scores ? episodes : samples.map((_, i) => [i]), estimate),
    byTurn: estimate =>
      overJoined(sequences, episodes, rows => {
        const turns = {
          rewards: rows.map(({ rewards, turnEnds }) => rewardsByTurn(rewards, turnEnds)),
          groups: episodes.map(([first]) => samples[first].episode.group_id),
        };
        const advantages = estimate(turns);
        return {
          advantages: rows.map((row, e) => spreadOverTurns(advantages[e], row.turnEnds, row.mask)),
        };
      }).advantages,
  };
}

/** Sum of the rewards of each turn: from the token after the previous turn's end to its own end. */
const rewardsByTurn = (rewards: Float32Array, turnEnds: readonly number[]): number[] =>
  turnEnds.map((end, turn) => sum(rewards.subarray(turn === 0 ? 0 : turnEnds[turn - 1] + 1, end + 1)));

/** Sum of a row. */
export const sum = (row: Float32Array): number => row.reduce((total, x) => total + x, 0);
