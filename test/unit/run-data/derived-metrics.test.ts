// The note on the origin of derived metrics.
import { expect, it } from 'vitest';
import { derivedMeanings } from '../../../extension/run-data/derived-metrics';

it('adds to each meaning where the value comes from', () => {
  const names = ['thoughts/rate', 'collapse_first_turn_sample/mi_estimate', 'unknown'];
  const meanings = derivedMeanings({ schema: 1, names, model: 'ragen-tiny' }, 'verl', name =>
    name === 'unknown' ? undefined : `Meaning of ${name}.`,
  );
  expect(meanings).toEqual({
    'thoughts/rate': 'Meaning of thoughts/rate. Derived from the stored rollouts; verl did not log it.',
    'collapse_first_turn_sample/mi_estimate':
      'Meaning of collapse_first_turn_sample/mi_estimate. Derived from the stored rollouts under ragen-tiny; verl did not log it.',
    unknown: 'Derived from the stored rollouts; verl did not log it.',
  });
});
