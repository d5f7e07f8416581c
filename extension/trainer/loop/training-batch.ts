// The training batch of a step: the samples of the kept episodes with their masks, turn ends and token rewards. A
// sample is a complete episode in mode `full` and one turn in a windowed mode. If turn scores are used, a turn's
// advantage depends on the rewards of later turns. All samples of an episode are therefore concatenated, in turn order,
// before an advantage estimator processes them as one sequence.
import type { TokenSequence } from '../../../envs/api/plugins/estimator';
import { adjustedSamples, batchMultiple } from '../../algorithms/batch-adjustment';
import { placeRewards } from '../../algorithms/token-sequences';
import type { RunConfig } from '../config/schema';
import { RandomStream } from '../../engine/sampling/random-stream';
import { sampledMask } from '../rollout/rollout-sample';
import { roleId, roleIndex } from '../rollout/role-returns';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import type { RolloutSample } from '../rollout/rollout-sample';
import { deriveSeed } from '../rollout/seeds';

/** One sample of the batch. Arrays have the length of `ids`. */
export interface BatchSample {
  sample: RolloutSample;
  episode: RolloutEpisode;
  /** Id of the episode, or of the role in the episode, to which group statistics assign this sample. */
  countsAs: number;
  /** Id of the samples whose scores are compared: those of the prompt group or, with roles, of the role in the group. */
  group: number;
  ids: Int32Array;
  /** The pictures that the tokens show; undefined if they show none. */
  shows: RolloutSample['shows'];
  /** 1 if the token is in the policy's loss (TRICO's loss mask). */
  mask: Uint8Array;
  /** 1 if an advantage is estimated at the token and the critic is trained on it (TRICO's advantage mask). */
  estimated: Uint8Array;
  /** 1 if the token was sampled. */
  sampled: Uint8Array;
  /** Log-probs of the sampler at sampled tokens, in nats; 0 elsewhere. */
  logprobs: Float32Array;
  /** Position of the last sampled token of each turn, in ascending order. */
  turnEnds: number[];
}

type SampleConfig = Pick<RunConfig, 'workbench' | 'rollout_manager'>;

/** Returns the samples of `episodes`, in order. */
export function batchSamples(episodes: readonly RolloutEpisode[], config: SampleConfig): BatchSample[] {
  return episodes.flatMap((episode, index) =>
    episode.samples.map(sample => {
      const sampled = sampledMask(sample);
      const role = roleIndex(episode, sample.role);
      return {
        sample,
        episode,
        countsAs: roleId(index, role),
        group: roleId(episode.group_id, role),
        ids: sample.ids,
        shows: sample.shows,
        mask: sample.mask,
        estimated: estimatedMask(sample, sampled, config),
        sampled,
        logprobs: sample.logprobs,
        turnEnds: sample.turns.map(({ span: [, to] }) => to - 1),
      };
    }),
  );
}

/**
 * Returns the mask of tokens at which advantages are estimated. By default, these are all tokens from the first to the
 * last sampled token. With `use_gae_mask`, these are only the sampled tokens. With `workbench.compat: ragen`, these are
 * the trained tokens.
 */
function estimatedMask({ mask }: RolloutSample, sampled: Uint8Array, config: SampleConfig): Uint8Array {
  if (config.workbench.compat === 'ragen') return mask;
  if (config.rollout_manager.use_gae_mask) return sampled;
  return new Uint8Array(mask.length).fill(1, sampled.indexOf(1), sampled.lastIndexOf(1) + 1);
}

/**
 * Returns two arrays. `own` contains the samples of all kept groups. `order` contains the indices of the samples to
 * train on, in the seeded order in which the optimizer steps use them. If the trajectory filter or a response
 * filter dropped episodes of a kept group, their samples are in `own` but not in `order`. They are in `own` because the
 * group's advantages depend on them.
 */
export function trainedSamples(
  { kept, trainable }: { kept: readonly RolloutEpisode[]; trainable: readonly RolloutEpisode[] },
  config: RunConfig,
  step: number,
): { own: BatchSample[]; order: number[] } {
  const groups = new Set(kept.map(({ group_id }) => group_id));
  const own = batchSamples(
    trainable.filter(({ group_id }) => groups.has(group_id)),
    config,
  );
  const trained = samplesOf(own, kept);
  return { own, order: adjustedOrder(trained.length, config, step).map(position => trained[position]) };
}

/**
 * Returns the indices of the samples of the given episodes. Metrics of a batch describe the samples of the kept episodes;
 * the batch also contains other episodes of their groups (`trainedSamples`).
 */
export function samplesOf(samples: readonly BatchSample[], episodes: readonly RolloutEpisode[]): number[] {
  const chosen = new Set(episodes);
  return Array.from(samples.keys()).filter(index => chosen.has(samples[index].episode));
}

/**
 * Returns the seeded order of `count` samples for the optimizer steps. Depending on `agent_proxy.batch_adjust_mode`,
 * some indices are repeated or omitted, so that the samples divide evenly into mini-batches.
 */
export function adjustedOrder(count: number, config: RunConfig, step: number): number[] {
  const multiple = batchMultiple(
    config.es_manager.train.env_groups,
    config.actor_rollout_ref.actor.ppo_mini_batch_size,
  );
  const { batch_adjust_mode } = config.agent_proxy;
  // If there are fewer samples than `multiple`, mode `delete` would drop all samples, so mode `weights` is used.
  const mode = batch_adjust_mode === 'delete' && count < multiple ? 'weights' : batch_adjust_mode;
  const random = new RandomStream(deriveSeed('batch-adjustment', config.seed.train, step));
  return Array.from(adjustedSamples(count, multiple, mode, random));
}

/**
 * Returns the samples in `order`. A repeated sample is treated as an additional episode, because RAGEN adjusts the
 * batch before it estimates advantages.
 */
export function adjustedSamplesOf(samples: readonly BatchSample[], order: readonly number[]): BatchSample[] {
  const seen = new Set<number>();
  return order.map((index, position) => {
    if (!seen.has(index)) {
      seen.add(index);
      return samples[index];
    }
    return { ...samples[index], countsAs: samples.length + position };
  });
}

/**
 * Returns the rewards per token. By default, the last sampled token of each sample has the score of the sample's
 * episode. With `use_turn_scores`, the last token of each turn has the sum of the turn's reward, penalty and reward
 * components; with `workbench.compat: ragen`, the penalty is left out. The reward components of the episode are added to
 * its last turn. All other rewards are 0.
 */
export function tokenRewards(
  samples: readonly BatchSample[],
  scoreOf: (episode: RolloutEpisode, role: string | undefined) => number,
  { agent_proxy, workbench }: Pick<RunConfig, 'agent_proxy' | 'workbench'>,
): Float32Array[] {
  return samples.map(({ ids, sample, episode, turnEnds }) => {
    if (!agent_proxy.use_turn_scores)
      return placeRewards(ids.length, turnEnds.slice(-1), [scoreOf(episode, sample.role)]);
    const earned = sample.turns.map(({ turn }) => {
      const { reward, penalty, component_reward = 0 } = episode.turns[turn - 1];
      const end = turn === lastTurn(episode, sample.role) ? (episode.end_reward ?? 0) : 0;
      return (workbench.compat === 'ragen' ? reward : reward + penalty) + component_reward + end;
    });
    return placeRewards(ids.length, turnEnds, earned);
  });
}

/** Returns the number of the last turn of a role or, without roles, of the episode. */
const lastTurn = ({ turns }: RolloutEpisode, role: string | undefined): number =>
  role === undefined ? turns.length : (turns.findLast(turn => turn.role === role)?.turn ?? 0);

/**
 * Returns the sample indices of each episode, or of each role of an episode, in turn order. A sample that RAGEN's batch
 * adjustment repeated is treated as a separate episode.
 */
export function samplesByEpisode(samples: readonly BatchSample[]): number[][] {
  const found = new Map<number, number[]>();
  samples.forEach(({ countsAs }, index) => found.set(countsAs, [...(found.get(countsAs) ?? []), index]));
  return [...found.values()];
}

/**
 * Concatenates the sequences of each row, which is a list of indices into `sequences`. A row of one index is this
 * sequence itself.
 */
export function joinedSequences(
  sequences: readonly TokenSequence[],
  rows: readonly (readonly number[])[],
): TokenSequence[] {
  return rows.map(indices =>
    indices.length === 1 ? sequences[indices[0]] : joined(indices.map(index => sequences[index])),
  );
}

/** Splits arrays over the joined sequences into one array per sequence; `lengths` are the lengths of the sequences. */
export function splitRows<Row extends Float32Array | Uint8Array>(
  joined: readonly Row[],
  rows: readonly (readonly number[])[],
  lengths: readonly number[],
): Row[] {
  const split: Row[] = [];
  rows.forEach((indices, row) => {
    let from = 0;
    for (const index of indices) split[index] = joined[row].slice(from, (from += lengths[index])) as Row;
  });
  return split;
}

function joined(parts: readonly TokenSequence[]): TokenSequence {
  let length = 0;
  const starts = parts.map(({ mask }) => (length += mask.length) - mask.length);
  const join = <Row extends Float32Array | Uint8Array>(row: Row, read: (part: TokenSequence) => Row): Row => {
    parts.forEach((part, i) => row.set(read(part), starts[i]));
    return row;
  };
  const [{ group, baseline }] = parts;
  return {
    group,
    baseline,
    rewards: join(new Float32Array(length), part => part.rewards),
    values: join(new Float32Array(length), part => part.values),
    logprobs: join(new Float32Array(length), part => part.logprobs),
    squares: join(new Float32Array(length), part => part.squares),
    mask: join(new Uint8Array(length), part => part.mask),
    advantageMask: join(new Uint8Array(length), part => part.advantageMask),
    turnEnds: parts.flatMap(({ turnEnds }, i) => turnEnds.map(end => end + starts[i])),
  };
}
