// Which prompts and reasoning texts the collapse metrics compare, drawn from a rollout as RAGEN draws them. Each family
// is a list of columns (prompts) and of samples (reasonings), each with the column that it was written under. All draws
// come from the given stream.
import type { IntegerStream } from '../../algorithms/mini-batches';
import { UserError } from '../../common/user-error';

/** A turn's context up to where the reasoning begins, and the reasoning, as ids. `turn` counts from 1. */
export interface TurnPair {
  prompt: readonly number[];
  reasoning: readonly number[];
  turn: number;
}

/** What an episode offers. */
export interface EpisodePairs {
  episode: string;
  group: number;
  /** The first turn's pair, null where that turn has no reasoning. */
  first: TurnPair | null;
  /** The pairs of all turns that have a reasoning. */
  turns: readonly TurnPair[];
}

export interface SampledPair {
  episode: string;
  group: number;
  turn: number;
  reasoning: readonly number[];
  /** Its own prompt among the columns. */
  column: number;
}

export interface PairFamily {
  columns: (readonly number[])[];
  samples: SampledPair[];
}

/** Equal for equal prompts alone. */
export const promptSignature = (prompt: readonly number[]): string => prompt.join();

/**
 * `collapse_first_turn_sample`: first turns, at most `count` of them (null: all) without replacement; a column for each
 * group. Throws a UserError where the prompts of a group differ: it would have no one column.
 */
export function firstTurnPairs(
  episodes: readonly EpisodePairs[],
  count: number | null,
  random: IntegerStream,
): PairFamily {
  const candidates = episodes.flatMap(({ first, ...rest }) => (first ? [{ ...rest, ...first }] : []));
  const chosen = count === null ? candidates : withoutReplacement(candidates, count, random);
  const columnOf = new Map<number, number>();
  const columns: (readonly number[])[] = [];
  const samples = chosen.map(({ episode, group, turn, prompt, reasoning }) => {
    const column = columnOf.get(group) ?? columns.push(prompt) - 1;
    columnOf.set(group, column);
    if (promptSignature(columns[column]) !== promptSignature(prompt))
      throw new UserError(
        `collapse diagnosis: the first prompts of group ${group} differ between its episodes (${episode}): turn collapse_detection.first_turn_enabled off for environments that do not show a group the same start`,
      );
    return { episode, group, turn, reasoning, column };
  });
  return { columns, samples };
}

/**
 * `collapse_trajectory_sample`: as many draws as `count`, at most as there are turns: an episode uniformly, then one of
 * its turns; an episode without any yields nothing. Every drawn pair is a column of its own, also where it was drawn
 * before.
 */
export function trajectoryPairs(
  episodes: readonly EpisodePairs[],
  count: number | null,
  random: IntegerStream,
): PairFamily {
  const all = episodes.reduce((sum, { turns }) => sum + turns.length, 0);
  const drawn = Array.from({ length: Math.min(count ?? all, all) }, () => {
    const { turns, ...rest } = episodes[random.integer(episodes.length)];
    return turns.length > 0 ? [{ ...rest, ...turns[random.integer(turns.length)] }] : [];
  });
  return ownColumns(drawn.flat());
}

/**
 * `collapse_turn_sample`: all turns of all episodes alike, at most `count` of them without replacement, each its own
 * column.
 */
export function turnPairs(episodes: readonly EpisodePairs[], count: number | null, random: IntegerStream): PairFamily {
  const all = episodes.flatMap(({ turns, ...rest }) => turns.map(turn => ({ ...rest, ...turn })));
  return ownColumns(count === null ? all : withoutReplacement(all, count, random));
}

function ownColumns(pairs: readonly (TurnPair & { episode: string; group: number })[]): PairFamily {
  return {
    columns: pairs.map(({ prompt }) => prompt),
    samples: pairs.map(({ episode, group, turn, reasoning }, column) => ({ episode, group, turn, reasoning, column })),
  };
}

/** `count` of the items in a random order; all, as they are, where there are no more. */
function withoutReplacement<Item>(items: readonly Item[], count: number, random: IntegerStream): Item[] {
  if (count >= items.length) return [...items];
  const rest = [...items];
  return Array.from({ length: count }, () => {
    const [pick, last] = [random.integer(rest.length), rest.length - 1];
    [rest[pick], rest[last]] = [rest[last], rest[pick]];
    return rest.pop()!;
  });
}
