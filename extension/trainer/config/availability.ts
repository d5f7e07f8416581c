// Features that this version does not have yet. Their keys are accepted at the values listed and refused at any other, so that a
// configuration written for RAGEN either does what it says or says what is missing. A feature that lands deletes its line.
import { shown } from './config-error';

/** A key that may only have these values for want of a feature. */
export interface Restriction {
  key: string;
  available: readonly unknown[];
  /** Subject of the sentence "… is not available in this version". */
  feature: string;
}

export const restrictions: readonly Restriction[] = [
  {
    key: 'algorithm.adv_estimator',
    available: ['grpo', 'gae', 'brpo', 'arpo', 'rloo', 'reinforce_plus_plus', 'reinforce_plus_plus_baseline'],
    feature: 'this estimator',
  },
];

/** The sentence about a key whose value needs a feature that is not there, or undefined when the value is available. */
export function unavailable(
  { key, available, feature }: Restriction,
  value: unknown,
  shownKey = key,
): string | undefined {
  if (available.includes(value)) return undefined;
  const remedy = available.length === 1 ? `set it to ${available[0]}` : `use one of ${available.join(', ')}`;
  return `config: ${shownKey} is ${shown(value)}, but ${feature} is not available in this version: ${remedy}`;
}
