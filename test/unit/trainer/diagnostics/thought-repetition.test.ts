// Repetition of thoughts, compared with hand-computed values.
import { expect, it } from 'vitest';
import { thoughtRepetition } from '../../../../extension/trainer/diagnostics/thought-repetition';

it('counts distinct words, distinct pairs and the most frequent thought', () => {
  const found = thoughtRepetition(['go up  now', 'Go up now', 'stay here']);
  // 5 of 8 words are distinct (go, up, now, stay, here), and 3 of 5 pairs of words.
  expect(found).toEqual({
    'thoughts/distinct_1': 5 / 8,
    'thoughts/distinct_2': 3 / 5,
    'thoughts/most_frequent': 2 / 3,
  });
});

it('returns no metrics without a thought, and no repetition of pairs for single words', () => {
  expect(thoughtRepetition([])).toEqual({});
  expect(thoughtRepetition(['up', 'down'])).toMatchObject({ 'thoughts/distinct_2': 1, 'thoughts/most_frequent': 0.5 });
});
