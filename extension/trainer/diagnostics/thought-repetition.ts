// How much thoughts repeat, the sign of an Echo Trap that a reader sees first (RAGEN, Table 1). Words are what stands
// between blanks, in small letters. Pure.
import { maximum } from '../../common/lists';

/**
 * Of at least one thought: `distinct_1` and `distinct_2`, different words and pairs of neighbouring words over all of
 * them (1: none occurs twice; 1 too where there are none), and `most_frequent`, the share of the thought that is there
 * most often.
 */
export function thoughtRepetition(thoughts: readonly string[]): Record<string, number> {
  if (thoughts.length === 0) return {};
  const words = thoughts.map(thought => thought.toLowerCase().split(/\s+/).filter(Boolean));
  const pairs = words.map(all => all.slice(1).map((word, i) => `${all[i]} ${word}`));
  const copies = new Map<string, number>();
  for (const all of words) copies.set(all.join(' '), (copies.get(all.join(' ')) ?? 0) + 1);
  return {
    'thoughts/distinct_1': distinctShare(words.flat()),
    'thoughts/distinct_2': distinctShare(pairs.flat()),
    'thoughts/most_frequent': maximum(copies.values()) / thoughts.length,
  };
}

const distinctShare = (items: readonly string[]): number =>
  items.length === 0 ? 1 : new Set(items).size / items.length;
