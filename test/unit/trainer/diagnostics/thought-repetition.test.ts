// How thoughts repeat, by hand.
import { expect, it } from 'vitest';
import { thoughtRepetition } from '../../../../extension/trainer/diagnostics/thought-repetition';

it('counts distinct words, distinct pairs and the most frequent thought', () => {
  const found = thoughtRepetition(['go up  now', 'Go up now', 'stay here']);
  // 8 words of which go, up, now, stay, here differ; 5 pairs of which 3 differ.
  expect(found).toEqual({
    'thoughts/distinct_1': 5 / 8,
    'thoughts/distinct_2': 3 / 5,
    'thoughts/most_frequent': 2 / 3,
  });
});

it('says nothing without a thought, and takes single words for no repetition of pairs', () => {
  expect(thoughtRepetition([])).toEqual({});
  expect(thoughtRepetition(['up', 'down'])).toMatchObject({ 'thoughts/distinct_2': 1, 'thoughts/most_frequent': 0.5 });
});
