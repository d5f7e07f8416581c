// Converts an episode and its training results to a line of an episode file in the run folder. The tokens of all
// samples are concatenated.
import type { Episode } from '../../run-data/episode';
import { sampledMask } from './rollout-sample';
import { type RolloutEpisode } from './rollout-batch';

/** Results of the update for one sample, one value per token. An array is absent if the update did not compute it. */
export interface TrainedTokens {
  advantages: Float32Array;
  entropies?: Float32Array;
  reference?: Float32Array;
  teacher?: Float32Array;
  values?: Float32Array;
}

/** Training results of an episode; absent for validation. */
export interface EpisodeTraining {
  /** True if the rollout filter and the trajectory filter kept the episode. */
  kept: boolean;
  /** Results per token of each sample; absent if the episode was not trained on. */
  samples?: readonly TrainedTokens[];
}

/**
 * Returns the episode's record, which is one line of `episodes/*.jsonl`. Log-probs and advantages are written with nine
 * significant digits, which are enough to restore a float32 exactly. Entropies, values and the log-probs of reference and
 * teacher have six digits, because they are only displayed.
 */
export function episodeRecord(episode: RolloutEpisode, training?: EpisodeTraining): Episode {
  const { samples } = episode;
  const starts = samples.map((_, index) => samples.slice(0, index).reduce((sum, { ids }) => sum + ids.length, 0));
  const mask = samples.flatMap(sample => Array.from(sampledMask(sample), bit => (bit ? 1 : 0)));
  const logprobs = samples.flatMap(sample => Array.from(sample.logprobs));
  const spans = new Map(
    samples.flatMap(({ turns }, index) =>
      turns.map(({ turn, span: [from, to] }) => [turn, [starts[index] + from, starts[index] + to] as [number, number]]),
    ),
  );
  const pictures = samples.flatMap(({ shows = [] }, index) =>
    shows.map(({ at, picture }) => ({ at: starts[index] + at, picture })),
  );
  const trained = training?.samples;
  const advantages = trained?.map(sample => sample.advantages);
  /** Returns one value per token, null at untrained tokens; undefined if the update did not compute the values. */
  const column = (name: 'entropies' | 'reference' | 'teacher' | 'values'): (number | null)[] | undefined => {
    if (!trained?.every(sample => sample[name])) return undefined;
    return trained.flatMap((sample, index) => {
      const trainedMask = name === 'values' ? sampledMask(samples[index]) : samples[index].mask;
      return Array.from(sample[name]!, (x, token) => (trainedMask[token] ? Number(x.toPrecision(6)) : null));
    });
  };
  const [entropies, values] = [column('entropies'), column('values')];
  const [ref_logprobs, teacher_logprobs] = [column('reference'), column('teacher')];
  return {
    id: episode.id,
    step: episode.step,
    mode: episode.mode,
    group_id: episode.group_id,
    member: episode.member,
    env_id: episode.env_id,
    tag: episode.tag,
    environment: episode.environment,
    seed: episode.seed,
    terminated: episode.terminated,
    truncated: episode.truncated,
    success: episode.success,
    reward: episode.reward,
    penalty: episode.penalty,
    ...(episode.component_reward !== undefined && { component_reward: episode.component_reward }),
    score: episode.score,
    advantage: advantages ? trainedMean(advantages, samples) : null,
    kept: training ? training.kept : null,
    ...(episode.roles && { roles: episode.roles }),
    turns: episode.turns.map(turn => ({ ...turn, span: spans.get(turn.turn) ?? [0, 0] })), // [0, 0]: not played by the policy
    final_state: episode.final_state,
    ...(episode.final_pictures && { final_pictures: episode.final_pictures }),
    metrics: episode.metrics,
    ...(episode.components && { components: episode.components }),
    ...(episode.judgements && { judgements: episode.judgements }),
    ...(episode.error ? { error: episode.error.message } : {}),
    ...(episode.context_reason !== undefined && { context_reason: episode.context_reason }),
    messages: episode.messages,
    tokens: {
      ids: samples.flatMap(({ ids }) => Array.from(ids)),
      mask,
      logprobs: logprobs.map((logprob, token) => (mask[token] ? shortest(logprob) : null)),
      ...(advantages ? { advantages: advantages.flatMap(row => Array.from(row, shortest)) } : {}),
      ...(entropies && { entropies }),
      ...(ref_logprobs && { ref_logprobs }),
      ...(teacher_logprobs && { teacher_logprobs }),
      ...(values && { values }),
      ...(samples.length > 1 ? { starts } : {}),
      ...(pictures.length > 0 && { pictures }),
    },
  };
}

const shortest = (value: number): number => Number(value.toPrecision(9));

/** Returns the mean of the advantages over the trained tokens. */
function trainedMean(advantages: readonly Float32Array[], samples: RolloutEpisode['samples']): number {
  let sum = 0;
  let count = 0;
  samples.forEach(({ mask }, index) =>
    mask.forEach((bit, token) => {
      sum += bit ? advantages[index][token] : 0;
      count += bit;
    }),
  );
  return count > 0 ? sum / count : 0;
}
