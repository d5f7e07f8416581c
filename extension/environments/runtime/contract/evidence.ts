// Formats the texts with which a contract check describes what it has observed. Also defines when a step reports
// success, and the result of a requirement that does not apply.
import { sameState, type State, type Step } from './environment-instance';

/** Returned by a requirement that does not apply; `why` is one sentence. */
export class Skip {
  constructor(readonly why: string) {}
}

/**
 * Returns the first difference between two states as a clause, such as "the images differ"; undefined if the states are
 * equal.
 */
export function differenceOf(expected: State | Step, found: State | Step): string | undefined {
  if (expected.text !== found.text) return `the observation is ${quoted(found.text)}, not ${quoted(expected.text)}`;
  if (!sameState(expected, found)) return 'the images differ';
  if (!('reward' in expected) || !('reward' in found)) return undefined;
  if (!Object.is(expected.reward, found.reward)) return `the reward is ${found.reward}, not ${expected.reward}`;
  if (expected.over !== found.over) return found.over ? 'the episode is over' : 'the episode is not over';
  const [one, other] = [JSON.stringify(expected.info), JSON.stringify(found.info)];
  return one === other ? undefined : `the info is ${quoted(other)}, not ${quoted(one)}`;
}

/** Whether a step reports success: by `success` in its info or, without it, by a reward at the end. */
export const reportsSuccess = ({ over, reward, info: { success } }: Step): boolean =>
  typeof success === 'boolean' ? success : over && reward > 0;

/** Returns a count followed by its noun; the noun gets an s unless the count is 1. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
/** Formats a number with at most six significant digits. */
export const round = (value: number): string => String(Number(value.toPrecision(6)));
/** Puts a text in quotes, truncated to 60 characters. */
export const quoted = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 59)}…` : text);
