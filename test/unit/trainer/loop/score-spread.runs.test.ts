import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scoresByTag, spreadOf } from '../../../../extension/trainer/loop/score-spread';

test('distinct scores are counted by tag, in ascending order', () => {
  const episodes = [1, -0.1, 1, 0, -0].map(score => ({ tag: 'lake', score }));
  expect(scoresByTag([...episodes, { tag: 'box', score: 10.9 }, { tag: 'box', score: NaN }])).toEqual({
    lake: [
      [-0.1, 1],
      [0, 2],
      [1, 2],
    ],
    box: [[10.9, 1]],
  });
});

test('many different scores are binned: all episodes are counted, each within half an interval of its score', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: -50, max: 50, noNaN: true }), { minLength: 1, maxLength: 300 }), scores => {
      const spread = spreadOf(scores);
      expect(spread.length).toBeLessThanOrEqual(48);
      expect(spread.reduce((sum, [, count]) => sum + count, 0)).toBe(scores.length);
      const [low, high] = [Math.min(...scores), Math.max(...scores)];
      const sorted = [...scores].sort((a, b) => a - b);
      const expanded = spread.flatMap(([score, count]) => Array<number>(count).fill(score));
      const slack = (high - low) / 96 + 1e-3;
      sorted.forEach((score, i) => expect(Math.abs(expanded[i] - score)).toBeLessThanOrEqual(slack));
    }),
    { seed: 20260203, numRuns: 100 },
  );
});
