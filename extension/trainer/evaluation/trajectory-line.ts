// A played episode as a line of RAGEN's trajectory JSONL: the states as the user's messages, the raw answers as the assistant's, and
// what came of it. Two mistakes of the original are put right here: `success` is the episode's (it was always false, being looked up
// without the tag), and a state carries the reward of the turn that led to it (it carried that of the turn about to be taken).
// `ragen` gives a line as the original writes it, mistakes included.
import type { Episode } from '../../protocol/run-folder';
import { pythonFloat } from '../rollout/python-float';

export type TrajectoryForm = 'workbench' | 'ragen';

export interface TrajectoryLine {
  /** `traj_<i>`, counted over the whole evaluation. */
  custom_id: string;
  messages: { role: 'user' | 'assistant'; content: string }[];
  metadata: Record<string, unknown>;
}

/** What the line tells besides the episode's own record. */
export interface TrajectoryFacts {
  /** Metrics under their full keys (`tag/num_actions`). */
  metrics: Readonly<Record<string, number>>;
  /** Mean entropy of the model's distribution over the sampled tokens, in nats; null where it was not computed. */
  entropy: number | null;
  /** Tokens that the model wrote. */
  n_tokens: number;
}

/** The line of episode number `index`. */
export function trajectoryLine(
  index: number,
  episode: Episode,
  { metrics, entropy, n_tokens }: TrajectoryFacts,
  form: TrajectoryForm,
): TrajectoryLine {
  const { turns } = episode;
  const shown = form === 'ragen' ? (turn: number) => turns[turn]?.reward : (turn: number) => turns[turn - 1]?.reward;
  const state = (turn: number, text: string) => ({
    role: 'user' as const,
    content: turn > 0 ? text + rewardSuffix(shown(turn) ?? 0) : text,
  });
  const messages = turns.flatMap((turn, i) => [
    state(i, turn.state),
    { role: 'assistant' as const, content: turn.raw },
  ]);
  return {
    custom_id: `traj_${index}`,
    messages: [...messages, state(turns.length, episode.final_state)],
    metadata: {
      env_id: episode.env_id,
      group_id: episode.group_id,
      ...(form === 'workbench' && { tag: episode.tag, seed: episode.seed }),
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
