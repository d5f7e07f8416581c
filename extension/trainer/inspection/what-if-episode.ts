// The record of a what-if episode: a line of `what-if/` with its own id and a reference to the original episode. Tokens
// that the user wrote have mask 0 and no log-prob. Also compares replayed turns with the stored ones.
import { existsSync } from 'node:fs';
import type { WhatIfRequest, WhatIfState } from '../../protocol/inspection';
import { maximum } from '../../common/lists';
import { episodeFile } from '../../run-data/run-file-names';
import type { Episode, EpisodeTurn } from '../../run-data/episode';
import { shaped } from '../loop/rollout-collection';
import { episodeRecord } from '../rollout/episode-record';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { readLines } from '../store/line-log';
import type { ScriptedTurn } from './scripted-turns';
import type { WhatIfParts } from './what-if-parts';
import type { RunFolder } from '../store/run-folder';

/** The turns of a what-if that were played so far. */
export interface PlayedTurns {
  turns: readonly ScriptedTurn[];
  /** Number of tokens at the start of the changed turn's response that equal the recorded tokens. */
  kept: number;
  /** Player of each turn from the changed turn on: the name of a checkpoint, or `hand`. */
  players: readonly string[];
  notes: string[];
}

/**
 * Converts a played what-if to an episode record. The record still has the id of the original episode; `writeWhatIf`
 * assigns a new id.
 */
export function whatIfEpisode(
  played: RolloutEpisode,
  { origin, run }: Pick<WhatIfParts, 'origin' | 'run'>,
  { turn, given, seed }: Pick<WhatIfRequest, 'turn' | 'given' | 'seed'>,
  { turns, kept, players, notes }: PlayedTurns,
): Episode {
  const episode = episodeRecord(origin.mode === 'train' ? shaped(played, run.config) : played);
  const { mask, logprobs } = episode.tokens;
  for (const { turn: at, span } of episode.turns) {
    const [from, to] = [span[0], span[0] + turns[at - 1].given];
    mask.fill(0, from, to);
    logprobs.fill(null, from, to);
    if (at > turn) continue;
    // Tokens that equal the recorded response keep the recorded mask and log-probs.
    const [start, end] = origin.turns[at - 1].span;
    for (let i = start; i < (at < turn ? end : start + kept); i++) {
      mask[from + i - start] = origin.tokens.mask[i];
      logprobs[from + i - start] = origin.tokens.logprobs[i];
    }
  }
  return {
    ...episode,
    id: origin.id,
    group_id: origin.group_id,
    env_id: origin.env_id,
    what_if: {
      of: origin.id,
      turn,
      given,
      players: players.slice(0, episode.turns.length - turn + 1),
      seed,
      notes,
    },
  };
}

/** Writes an episode under the first unused id; returns id and file. */
export function writeWhatIf(folder: RunFolder, episode: Episode): NonNullable<WhatIfState['written']> {
  const base = episode.id.replace(/-w\d+$/, '');
  const { mode, step } = episode;
  const file = episodeFile({ mode, step, id: `${base}-w1` });
  const numbers = existsSync(folder.file(file))
    ? [...readLines(folder.file(file))].map(({ text }) => numberOf(text.slice(0, 200), base))
    : [];
  const id = `${base}-w${maximum(numbers, 0) + 1}`;
  const log = folder.whatIf(file);
  try {
    log.append({ ...episode, id });
    log.sync();
  } finally {
    log.close();
  }
  return { folder: folder.path, mode, step, id, file };
}

/**
 * Reads the id of a what-if episode from `head`, the start of its line. Returns n if the id is `<base>-w<n>`, otherwise
 * 0.
 */
function numberOf(head: string, base: string): number {
  const [, id, digits] = /"id":("(?:[^"\\]|\\.)*-w(\d+)")/.exec(head) ?? [];
  return id === JSON.stringify(`${base}-w${digits}`) ? Number(digits) : 0;
}

/** Returns the stored response of a turn, and the ids that precede it in the same context. */
export function storedAnswer({ tokens, turns }: Episode, turn: number) {
  const { span, finish } = turns[turn - 1];
  const start = (tokens.starts ?? [0]).findLast(from => from <= span[0]) ?? 0;
  return {
    prompt: tokens.ids.slice(start, span[0]),
    row: {
      ids: tokens.ids.slice(...span),
      logprobs: tokens.logprobs.slice(...span).map(x => x ?? 0),
      finish,
    },
  };
}

/** Describes the difference between a replayed turn and the stored turn; undefined if they are equal. */
export function differenceOf(stored: EpisodeTurn, played: Omit<EpisodeTurn, 'finish' | 'span'>): string | undefined {
  if (stored.raw !== played.raw) return 'another answer';
  if (JSON.stringify(stored.executed) !== JSON.stringify(played.executed)) return 'other actions';
  return stored.reward === played.reward ? undefined : `the reward ${played.reward} instead of ${stored.reward}`;
}

/** Describes the difference between the observation of a replayed turn and the stored one; undefined if they are equal. */
export function observationDifference(
  stored: Pick<EpisodeTurn, 'state' | 'pictures'>,
  { state, pictures }: { state: string; pictures: readonly { name: string }[] },
): string | undefined {
  if (stored.state !== state) return 'another state';
  const { pictures: names = [] } = stored;
  const same = names.length === pictures.length && names.every((name, i) => name === pictures[i].name);
  return same ? undefined : 'other pictures';
}

/** Whether two lists of ids are equal. */
export const sameIds = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((id, i) => id === b[i]);
