// Measures how often thoughts repeat, which is the first visible sign of an Echo Trap (RAGEN, Table 1). Words are
// separated by white space and compared in lower case. Pure.
import { maximum } from '../../common/lists';

/**
 * Returns three metrics under `thoughts/`, each 0…1, or no metrics if there are no thoughts. `distinct_1`: number of
 * different words divided by the number of words, over all thoughts (1 if there are no words). `distinct_2`: the same
 * for pairs of adjacent words. `most_frequent`: share of the thoughts that equal the most frequent thought.
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
