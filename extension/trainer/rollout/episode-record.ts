// An episode as a line of the run folder, with what training made of it.
import type { Episode } from '../../protocol/run-folder';
import type { RolloutEpisode } from './rollout-batch';

/** What the update did with an episode. Left out for validation. */
export interface EpisodeTraining {
  /** Kept by the rollout filter. */
  kept: boolean;
  /** Advantage of each token, as trained on; left out when the episode was not. */
  advantages?: Float32Array;
}

/** The line of `episodes/*.jsonl`. Float32 values are written with the nine digits that give them back exactly. */
export function episodeRecord(episode: RolloutEpisode, training?: EpisodeTraining): Episode {
  const mask = Array.from(episode.mask, bit => (bit ? 1 : 0));
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
    advantage: advantages ? meanWhere(advantages, episode.mask) : null,
    kept: training ? training.kept : null,
    turns: episode.turns,
    final_state: episode.final_state,
    metrics: episode.metrics,
    ...(episode.error ? { error: episode.error.message } : {}),
    messages: episode.messages,
    tokens: {
      ids: Array.from(episode.ids),
      mask,
      logprobs: Array.from(episode.logprobs, (logprob, token) => (mask[token] ? shortest(logprob) : null)),
      ...(advantages ? { advantages: Array.from(advantages, shortest) } : {}),
    },
  };
}

const shortest = (value: number): number => Number(value.toPrecision(9));

function meanWhere(values: Float32Array, mask: Uint8Array): number {
  let sum = 0;
  let count = 0;
  values.forEach((value, token) => {
    sum += mask[token] ? value : 0;
    count += mask[token];
  });
  return count > 0 ? sum / count : 0;
}
