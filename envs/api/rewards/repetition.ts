// Reward component `repetition`: how much of a thought repeats earlier parts of the same thought. Pure. The measure is
// seq-rep-n of Welleck et al., Neural Text Generation with Unlikelihood Training, 2020.
import type { AnsweredTurn } from '../rewards';

/**
 * Returns the share of the thought's n-grams that repeat an earlier n-gram: 0 if all n-grams differ, close to 1 if the
 * thought repeats the same words. An n-gram consists of `size` adjacent words; words are separated by white space and
 * compared in lower case. A thought with fewer than `size` words has the value 0.
 */
export function repetition({ thought }: Pick<AnsweredTurn, 'thought'>, { size }: { size: number }): number {
  const words = (thought ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const grams = words.slice(size - 1).map((_, i) => words.slice(i, i + size).join(' '));
  return grams.length === 0 ? 0 : 1 - new Set(grams).size / grams.length;
}
