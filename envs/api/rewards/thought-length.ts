// Reward component `thought_length`: whether the length of a thought is in a target range. Pure.
import type { AnsweredTurn } from '../rewards';

/** Target range of a thought's length, in words separated by white space; `min` is at most `max`. */
export interface LengthRange {
  min: number;
  max: number;
}

/**
 * Returns 1 if the length of the thought is in the range, and a smaller number outside the range. Below the range, the
 * value is the length divided by `min`. Above the range, it falls linearly and reaches 0 at twice `max`. An answer
 * without a thought has length 0.
 */
export function thoughtLength({ thought }: Pick<AnsweredTurn, 'thought'>, { min, max }: LengthRange): number {
  const words = (thought ?? '').split(/\s+/).filter(Boolean).length;
  if (words < min) return words / min;
  return words > max ? Math.max(0, 2 - words / max) : 1;
}
