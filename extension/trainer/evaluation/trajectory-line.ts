// Converts an episode to a line of RAGEN's trajectory JSONL: states as user messages, raw responses as assistant
// messages, and the results. A line has one of two forms. The form `workbench` fixes two bugs of RAGEN's original. In
// RAGEN, `success` was always false, because the tag was omitted from the metric's key; here, `success` is the success
// of the episode. In RAGEN, a state had the reward of the turn after the state; here, a state has the reward of the
// turn before the state. The form `ragen` reproduces both bugs.
import type { RoleEpisode } from '../../run-data/trajectories/role-episodes';
import { pythonFloat } from '../rollout/python-float';

export type TrajectoryForm = 'workbench' | 'ragen';

export interface TrajectoryLine {
  /** `traj_<i>`; i is the number of the episode within the evaluation. */
  custom_id: string;
  /** `pictures` are names of files in the run folder's `pictures`, in the order of the marks `<image>` of the content. */
  messages: { role: 'user' | 'assistant'; content: string; pictures?: (string | null)[] }[];
  metadata: Record<string, unknown>;
}

/** Fields of the line that are not in the episode's record. */
export interface TrajectoryFacts {
  /** Metrics of the episode by full key (`tag/num_actions`). */
  metrics: Readonly<Record<string, number>>;
  /** Entropy of the model's distribution, averaged over the sampled tokens, in nats; null if it was not computed. */
  entropy: number | null;
  /** Number of tokens that the model generated. */
  n_tokens: number;
}

/** Returns the line of episode number `index` (from 0). */
export function trajectoryLine(
  index: number,
  episode: RoleEpisode,
  { metrics, entropy, n_tokens }: TrajectoryFacts,
  form: TrajectoryForm,
): TrajectoryLine {
  const { turns } = episode;
  const shown = form === 'ragen' ? (turn: number) => turns[turn]?.reward : (turn: number) => turns[turn - 1]?.reward;
  const state = (turn: number, text: string, pictures?: (string | null)[]) => ({
    role: 'user' as const,
    content: turn > 0 ? text + rewardSuffix(shown(turn) ?? 0) : text,
    ...(form === 'workbench' && pictures && { pictures }),
  });
  const messages = turns.flatMap((turn, i) => [
    state(i, turn.state, turn.pictures),
    { role: 'assistant' as const, content: turn.raw },
  ]);
  return {
    custom_id: `traj_${index}`,
    messages: [...messages, state(turns.length, episode.final_state, episode.final_pictures)],
    metadata: {
      env_id: episode.env_id,
      group_id: episode.group_id,
      ...(form === 'workbench' && { tag: episode.tag, seed: episode.seed }),
      ...(form === 'workbench' && episode.role !== undefined && { role: episode.role }),
      num_turns: turns.length,
      total_reward: episode.score,
      success: form === 'workbench' && episode.success,
      ...metrics,
      ...(form === 'workbench' && { entropy, n_tokens }),
      ...(form === 'workbench' && episode.error !== undefined && { error: episode.error }),
    },
  };
}

const rewardSuffix = (reward: number): string => (reward === 0 ? '' : ` (reward: ${pythonFloat(reward)})`);
