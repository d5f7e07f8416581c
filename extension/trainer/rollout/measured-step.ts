// A rollout as metrics receive it (envs/api/plugins/metric.ts): built-in metrics in this process, plug-ins as copies.
// Invariant: built-in metrics and plug-ins receive the same values.
import type { MeasuredEpisode, MeasuredTurn } from '../../../envs/api/plugins/measured-episode';
import type { MeasuredStep } from '../../../envs/api/plugins/metric';
import { playedEpisode } from '../plugins/played-episode';
import type { RolloutEpisode } from './rollout-batch';

/** The episodes of a step by what became of them; by default, none can be trained on. */
export interface MeasuredRollout {
  step: number;
  played: readonly RolloutEpisode[];
  trainable?: readonly RolloutEpisode[];
  kept?: readonly RolloutEpisode[];
}

/** Returns a step without metrics. @param thinks whether the prompts of a tag ask for a thought */
export function measuredStep(
  { step, played, trainable = [], kept = [] }: MeasuredRollout,
  thinks: (tag: string) => boolean,
): MeasuredStep {
  const trained = new Set(kept);
  const all = new Map(
    played.map(episode => [episode, measuredEpisode(episode, trained.has(episode), thinks(episode.tag))]),
  );
  const episodes = trainable.flatMap(episode => all.get(episode) ?? []);
  return { step, episodes, played: [...all.values()], metrics: {} };
}

function measuredEpisode(episode: RolloutEpisode, kept: boolean, thinks: boolean): MeasuredEpisode {
  const { episodic_return, context_full, context_shortened, metrics, judgements, error } = episode;
  const played = playedEpisode(episode);
  return {
    ...played,
    turns: played.turns.map((turn, i): MeasuredTurn => {
      const { judgements: ofTurn } = episode.turns[i];
      return ofTurn ? { ...turn, judgements: ofTurn } : turn;
    }),
    ...{ kept, thinks, episodic_return, context_full, context_shortened, metrics },
    ...(judgements && { judgements }),
    ...(error && { error: error.message }),
  };
}
