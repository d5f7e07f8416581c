// The frames of an episode's playback, and the position in them. A frame shows the state before a turn with the thought
// and the actions of this turn; the last frame shows the final state. Pure functions.
import { maximum } from '../../../extension/common/lists';
import type { Episode, EpisodeTurn } from '../../../extension/run-data/episode';
import { runningReturns } from '../../../extension/run-data/running-returns';

export interface PlaybackFrame {
  /** `Turn 3 of 7`, or `End`. */
  readonly title: string;
  readonly state: string;
  /** Pictures of the state: data URLs, null for a missing picture. */
  readonly pictures: readonly (string | null)[];
  /** State of the frame before; null for the first frame. */
  readonly previous: string | null;
  /** The turn; null for the last frame. */
  readonly turn: EpisodeTurn | null;
  /** Whether the environment ended the episode in this turn. */
  readonly endsEpisode: boolean;
  /** Return up to and including this turn, without penalties: that of the turn's role. */
  readonly running: number;
  /** Largest absolute reward of the episode; it determines the scale of the reward bar. */
  readonly largest: number;
}

/** Position and motion of the player. */
export interface Player {
  /** Index of the frame, from 0. */
  readonly frame: number;
  readonly isPlaying: boolean;
}

/**
 * Moves the player. `advance` is the clock of a playing episode; every other movement pauses the playback. `toggle` at
 * the last frame starts again at the first frame.
 */
export type PlayerCommand = 'toggle' | 'pause' | 'next' | 'previous' | 'first' | 'last' | 'advance' | { to: number };

export const firstPlayer: Player = { frame: 0, isPlaying: false };

/** Playback speeds; 1 shows a turn for `turnMs`. */
export const speeds = [0.5, 1, 2, 4] as const;
const turnMs = 1600;
/** The last frame is shown longer, so that a looping picture visibly ends. */
const lastMs = 2800;

/** Returns the frames of an episode: one per turn, and one for the final state. */
export function playbackFrames({ turns, final_state, final_pictures = [], terminated }: Episode): PlaybackFrame[] {
  const largest = maximum(
    turns.map(({ reward }) => Math.abs(reward)),
    0,
  );
  const returns = runningReturns(turns);
  const played = turns.map((turn, i): PlaybackFrame => {
    const running = returns[i];
    const endsEpisode = terminated && i === turns.length - 1;
    const title = `Turn ${turn.turn} of ${turns.length}${turn.role === undefined ? '' : `, ${turn.role}`}`;
    const { state, pictures = [] } = turn;
    return { title, state, pictures, previous: turns[i - 1]?.state ?? null, turn, endsEpisode, running, largest };
  });
  const previous = turns.at(-1)?.state ?? null;
  const end = { title: 'End', state: final_state, pictures: final_pictures, previous, turn: null, endsEpisode: false };
  return [...played, { ...end, running: returns.at(-1) ?? 0, largest }];
}

/** Returns how long a frame is shown, in milliseconds. */
export const frameMs = (frame: number, frames: number, speed: number): number =>
  Math.round((frame === frames - 1 ? lastMs : turnMs) / speed);

/** Returns the player after a command; the same object if nothing changes. `frames` is at least 1. */
export function movePlayer(player: Player, command: PlayerCommand, frames: number, loop: boolean): Player {
  const { frame, isPlaying } = player;
  const last = frames - 1;
  if (command === 'toggle') return { frame: !isPlaying && frame >= last ? 0 : frame, isPlaying: !isPlaying };
  if (command === 'advance') {
    if (!isPlaying) return player;
    if (frame < last) return { frame: frame + 1, isPlaying };
    return loop && last > 0 ? { frame: 0, isPlaying } : { frame: last, isPlaying: false };
  }
  const targets = { pause: frame, next: frame + 1, previous: frame - 1, first: 0, last };
  const to = Math.max(0, Math.min(last, typeof command === 'object' ? Math.round(command.to) : targets[command]));
  return to === frame && !isPlaying ? player : { frame: to, isPlaying: false };
}

/** Returns the next slower (−1) or faster (1) speed; the given speed at the end of the list. */
export function speedAfter(speed: number, by: -1 | 1): number {
  const at = speeds.findIndex(each => each === speed);
  return speeds[Math.max(0, Math.min(speeds.length - 1, (at < 0 ? 1 : at) + by))];
}
