// Samples the prompts and reasoning texts that the collapse metrics compare, in the same way as RAGEN. A family is a
// list of columns (prompts) and a list of samples (reasoning texts); each sample refers to the column of its prompt.
// All random draws come from the given stream.
import type { IntegerStream } from '../../algorithms/mini-batches';
import { UserError } from '../../common/user-error';

/** A picture that a prompt shows, by its name, and the index of its first image token. */
interface ShownPicture {
  at: number;
  picture: string;
}

/** The context of a turn up to the start of the reasoning, and the reasoning, as token ids. `turn` counts from 1. */
export interface TurnPair {
  prompt: readonly number[];
  reasoning: readonly number[];
  turn: number;
  /** The pictures that the prompt shows; absent if it shows none. */
  shows?: readonly ShownPicture[];
}

/** Prompt and reasoning of each turn of an episode. */
export interface EpisodePairs {
  episode: string;
  group: number;
  /** The pair of the first turn; null if the first turn has no reasoning. */
  first: TurnPair | null;
  /** The pairs of all turns with reasoning. */
  turns: readonly TurnPair[];
}

export interface SampledPair {
  episode: string;
  group: number;
  turn: number;
  reasoning: readonly number[];
  /** Index into `columns`: the prompt after which the reasoning was sampled. */
  column: number;
}

export interface PairFamily {
  columns: (readonly number[])[];
  /** The pictures that each column shows; absent if none shows any. */
  shows?: (readonly ShownPicture[])[];
  samples: SampledPair[];
}

/** Returns the key of a prompt; two prompts have the same key only if their token ids and their pictures are equal. */
export const promptSignature = (prompt: readonly number[], shows: readonly ShownPicture[] = []): string =>
  [prompt.join(), ...shows.map(({ at, picture }) => `${at} ${picture}`)].join();

/** Returns the pictures of the columns, if one shows any. */
const shownBy = (shows: (readonly ShownPicture[] | undefined)[]): Pick<PairFamily, 'shows'> =>
  shows.some(each => each) ? { shows: shows.map(each => each ?? []) } : {};

/**
 * Samples the family `collapse_first_turn_sample`: at most `count` first turns, without replacement. If `count` is
 * null, all first turns are returned. Each prompt group has one column.
 * @throws UserError if the first prompts of a group differ, because a group has a single column
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
  const columnShows: (readonly ShownPicture[] | undefined)[] = [];
  const samples = chosen.map(({ episode, group, turn, prompt, reasoning, shows }) => {
    const column = columnOf.get(group) ?? columns.push(prompt) - 1;
    columnOf.set(group, column);
    if (column === columnShows.length) columnShows.push(shows);
    if (promptSignature(columns[column], columnShows[column]) !== promptSignature(prompt, shows))
      throw new UserError(
        `collapse diagnosis: the first prompts of group ${group} differ between its episodes (${episode}): set collapse_detection.first_turn_enabled to false if the episodes of a group do not start with the same observation`,
      );
    return { episode, group, turn, reasoning, column };
  });
  return { columns, ...shownBy(columnShows), samples };
}

/**
 * Samples the family `collapse_trajectory_sample`. Each draw chooses an episode uniformly, then one of its turns, with
 * replacement. The number of draws is `count`, but at most the total number of turns. If `count` is null, the number of
 * draws is the total number of turns. A drawn episode without turns adds no pair. Each drawn pair has a separate
 * column.
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
 * Samples the family `collapse_turn_sample`: at most `count` turns, drawn uniformly from the turns of all episodes
 * without replacement. If `count` is null, all turns are returned. Each turn has a separate column.
 */
export function turnPairs(episodes: readonly EpisodePairs[], count: number | null, random: IntegerStream): PairFamily {
  const all = episodes.flatMap(({ turns, ...rest }) => turns.map(turn => ({ ...rest, ...turn })));
  return ownColumns(count === null ? all : withoutReplacement(all, count, random));
}

function ownColumns(pairs: readonly (TurnPair & { episode: string; group: number })[]): PairFamily {
  return {
    columns: pairs.map(({ prompt }) => prompt),
    ...shownBy(pairs.map(({ shows }) => shows)),
    samples: pairs.map(({ episode, group, turn, reasoning }, column) => ({ episode, group, turn, reasoning, column })),
  };
}

/**
 * Returns `count` items in random order; if there are at most `count` items, returns all of them in their given order.
 */
function withoutReplacement<Item>(items: readonly Item[], count: number, random: IntegerStream): Item[] {
  if (count >= items.length) return [...items];
  const rest = [...items];
  return Array.from({ length: count }, () => {
    const [pick, last] = [random.integer(rest.length), rest.length - 1];
    [rest[pick], rest[last]] = [rest[last], rest[pick]];
    return rest.pop()!;
  });
}
