// Wording of a contract check's evidence, and the reason for a requirement that does not apply.
import { sameState, type State, type Step } from './instance';

/** Returned by a requirement that does not apply, with the reason. */
export class Skip {
  constructor(readonly why: string) {}
}

/** Returns the first difference between two states as a predicate, or undefined if they are equal. */
export function differenceOf(expected: State | Step, found: State | Step): string | undefined {
  if (expected.text !== found.text) return `the observation is ${quoted(found.text)}, not ${quoted(expected.text)}`;
  if (!sameState(expected, found)) return 'the images differ';
  if (!('reward' in expected) || !('reward' in found)) return undefined;
  if (!Object.is(expected.reward, found.reward)) return `the reward is ${found.reward}, not ${expected.reward}`;
  if (expected.over !== found.over) return found.over ? 'the episode is over' : 'the episode is not over';
  const [one, other] = [JSON.stringify(expected.info), JSON.stringify(found.info)];
  return one === other ? undefined : `the info is ${quoted(other)}, not ${quoted(one)}`;
}

/** A count with its noun. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
/** A number of at most six digits. */
export const round = (value: number): string => String(Number(value.toPrecision(6)));
/** A text in quotes, of at most 60 characters. */
export const quoted = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 59)}…` : text);
