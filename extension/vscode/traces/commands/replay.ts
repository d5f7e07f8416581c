// Checks whether an episode is reproducible. Replays its seed and actions in the current environment, and compares the
// reward and the next state of each turn with the recorded values. Pure functions; the caller runs the CLI.
import { z } from 'zod';
import { formatSigned } from '../../../common/numbers';
import type { Transcript } from '../../../protocol/environment-tools';
import type { Episode } from '../../../run-data/episode';
import type { Manifest } from '../../../run-data/run-manifest';

/** A case in the input of `ragen env play --input`. */
export interface ReplayCase {
  env: string;
  config: Record<string, unknown>;
  seed: number;
  member: number;
  mode: 'train' | 'val';
  actions: string[];
}

const tagSchema = z.object({ env_type: z.string(), env_config: z.record(z.string(), z.unknown()).nullish() });

/** Returns the case that replays an episode; undefined if the run's configuration lacks the episode's tag. */
export function replayCase(episode: Episode, { config }: Pick<Manifest, 'config'>): ReplayCase | undefined {
  const tags = config.custom_envs as Record<string, unknown> | undefined;
  const tag = tagSchema.safeParse(tags?.[episode.tag]).data;
  if (!tag) return undefined;
  const { seed, member, mode } = episode;
  const actions = episode.turns.flatMap(({ executed }) => executed);
  return { env: tag.env_type, config: tag.env_config ?? {}, seed, member, mode, actions };
}

/** The difference between a recorded turn and its replay. */
export interface ReplayDifference {
  turn: number;
  what: 'reward' | 'state' | 'end';
  recorded: string;
  now: string;
}

/** Returns the first turn whose replay differs from the recording; undefined if there is no such turn. */
export function firstDifference(
  episode: Episode,
  transcript: Exclude<Transcript, { error: string }>,
): ReplayDifference | undefined {
  const { turns } = episode;
  let played = 0;
  let state = transcript.observation;
  for (const [i, { turn, executed, reward, state: shown }] of turns.entries()) {
    if (!sameState(shown, state)) return { turn, what: 'state', recorded: shown, now: state };
    const steps = transcript.steps.slice(played, played + executed.length);
    if (steps.length < executed.length) {
      const now = `ended after ${played + steps.length} actions`;
      return { turn, what: 'end', recorded: `${played + executed.length} actions`, now };
    }
    const total = steps.reduce((sum, step) => sum + step.reward, 0);
    if (Math.abs(total - reward) > 1e-9)
      return { turn, what: 'reward', recorded: formatSigned(reward), now: formatSigned(total) };
    played += steps.length;
    state = steps.at(-1)?.observation ?? state;
    const last = steps.at(-1);
    const over = last !== undefined && (last.terminated || last.truncated);
    if (i < turns.length - 1 && over) return { turn, what: 'end', recorded: 'not over', now: 'over' };
  }
  const turn = turns.at(-1)?.turn ?? 0;
  return sameState(episode.final_state, state)
    ? undefined
    : { turn, what: 'state', recorded: episode.final_state, now: state };
}

const sameState = (a: string, b: string): boolean => a.trimEnd() === b.trimEnd();
