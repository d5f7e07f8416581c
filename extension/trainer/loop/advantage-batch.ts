// The input of the advantage estimators: scores and groups per sample, and sequences with rewards and values. There is
// one sequence per sample or, with `agent_proxy.use_turn_scores`, one sequence per complete episode. The table of the
// estimators is in train.ts. A new estimator also needs its name in config/schema.ts, and a case in
// cli/algo/algo-advantage.ts.
import type { NoisySequence } from '../../algorithms/optimal-token-baseline';
import { spreadOverTurns } from '../../algorithms/turn-advantages';
import type { RunConfig } from '../config/schema';
import { overJoined, samplesByEpisode } from './training-batch';
import type { BatchSample, EstimatedSequence } from './training-batch';

/** The input of advantage estimators; arrays have one entry per sample. */
export interface AdvantageBatch {
  /** Sum of the rewards of each sample. */
  scores: readonly number[];
  /** Prompt group of each sample. */
  groups: readonly number[];
  /** Episode number of each sample. In the statistics of a group, each episode is counted once. */
  episodes: readonly number[];
  masks: readonly Uint8Array[];
  /** The samples' tokens as the optimal token baseline needs them; `squares` are zeros for other estimators. */
  noisy: readonly NoisySequence[];
  /** Score of the greedy episode of each sample's group (ReMax); 0 for other estimators. */
  baselines: readonly number[];
  /**
   * Calls `estimate` with the batch's sequences: one per sample or, with `agent_proxy.use_turn_scores`, one per
   * complete episode.
   */
  ahead(estimate: (rows: EstimatedSequence[]) => Estimate): Estimate;
  /** Calls `estimate` with the rewards of each turn and the group of each episode. */
  byTurn(estimate: (turns: { rewards: number[][]; groups: number[] }) => Float32Array[]): Float32Array[];
}

interface Estimate {
  advantages: Float32Array[];
  /** Training targets of the critic; absent for estimators without a critic. */
  returns?: Float32Array[];
}
/** Computes the advantages of a batch and, if a critic is trained, the critic's targets. */
export type Estimator = (batch: AdvantageBatch, config: RunConfig) => Estimate;
/** Name of an estimator in the table `estimators` of train.ts. */
export type EstimatorName = RunConfig['algorithm']['adv_estimator'] | 'gae_by_turn' | 'grpo_by_turn';

/** Returns the name of the configured estimator. The per-turn variants of gae and grpo have separate names. */
export function estimatorName({ algorithm, agent_proxy }: RunConfig): EstimatorName {
  const { adv_estimator: name, bi_level_gae } = algorithm;
  if (name === 'gae') return bi_level_gae ? 'gae_by_turn' : 'gae';
  return name === 'grpo' && agent_proxy.use_turn_scores ? 'grpo_by_turn' : name;
}

/** Converts samples, rewards, values and baselines to the input of advantage estimators. */
export function advantageBatch(
  samples: readonly BatchSample[],
  {
    rewards,
    values,
    logprobs,
    squares,
    baselines,
  }: Record<'rewards' | 'values' | 'logprobs', readonly Float32Array[]> & {
    squares?: readonly Float32Array[];
  } & Pick<AdvantageBatch, 'baselines'>,
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
    noisy: samples.map(({ mask }, i) => ({
      rewards: rewards[i],
      logprobs: logprobs[i],
      squares: squares?.[i] ?? new Float32Array(mask.length),
      mask,
    })),
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

/** Returns the sum of the rewards of each turn. A turn's rewards begin after the end of the previous turn. */
const rewardsByTurn = (rewards: Float32Array, turnEnds: readonly number[]): number[] =>
  turnEnds.map((end, turn) => sum(rewards.subarray(turn === 0 ? 0 : turnEnds[turn - 1] + 1, end + 1)));

/** Returns the sum of the elements of a row. */
export const sum = (row: Float32Array): number => row.reduce((total, x) => total + x, 0);
