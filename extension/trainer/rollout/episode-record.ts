// An episode as a line of the run folder, with what training made of it. The tokens of its samples stand one behind the other.
import type { Episode } from '../../protocol/run-folder';
import { sampledMask, type RolloutEpisode } from './rollout-batch';

/** What the update did with an episode. Left out for validation. */
export interface EpisodeTraining {
  /** Kept by the rollout filter. */
  kept: boolean;
  /** Advantage of each token of each sample, as trained on; left out when the episode was not. */
  advantages?: readonly Float32Array[];
}

/** The line of `episodes/*.jsonl`. Float32 values are written with the nine digits that give them back exactly. */
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
  const advantages = training?.advantages;
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
    score: episode.score,
    advantage: advantages ? trainedMean(advantages, samples) : null,
    kept: training ? training.kept : null,
    turns: episode.turns.map(turn => ({ ...turn, span: spans.get(turn.turn)! })),
    final_state: episode.final_state,
    metrics: episode.metrics,
    ...(episode.error ? { error: episode.error.message } : {}),
    messages: episode.messages,
    tokens: {
      ids: samples.flatMap(({ ids }) => Array.from(ids)),
      mask,
      logprobs: logprobs.map((logprob, token) => (mask[token] ? shortest(logprob) : null)),
      ...(advantages ? { advantages: advantages.flatMap(row => Array.from(row, shortest)) } : {}),
      ...(samples.length > 1 ? { starts } : {}),
    },
  };
}

const shortest = (value: number): number => Number(value.toPrecision(9));

/** Mean over the tokens that were trained on. */
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
