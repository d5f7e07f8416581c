// The built-in reward components: values worked out by hand.
import { expect, test } from 'vitest';
import { grounding } from '../../../../envs/api/rewards/grounding';
import { repetition } from '../../../../envs/api/rewards/repetition';
import { thoughtLength } from '../../../../envs/api/rewards/thought-length';

const words = (count: number): string => Array.from({ length: count }, (_, i) => `w${i}`).join(' \n ');

test.each([
  [null, 0],
  ['', 0],
  [words(2), 0.5],
  [words(4), 1],
  [words(10), 1],
  [words(15), 0.5],
  [words(20), 0],
  [words(400), 0],
])('the length of %j in the range 4 to 10', (thought, value) => {
  expect(thoughtLength({ thought }, { min: 4, max: 10 })).toBe(value);
});

test.each([
  [null, 3, 0],
  ['one two', 3, 0],
  ['one two three', 3, 0],
  ['Go up. go UP. go up.', 2, 1 - 2 / 5], // "go up." three times, "up. go" twice
  ['a a a a', 1, 0.75],
  ['a a a a', 3, 0.5],
])('the repetition in %j with %i words', (thought, size, value) => {
  expect(repetition({ thought }, { size })).toBe(value);
});

const state = 'The player is at (1, 2), the box at (3, 4).\nMoves left: 7.'; // player box moves left, two pairs, one number
test.each([
  [null, 0],
  ['', 0],
  ['Let me think about this.', 0],
  ['player box moves left', 4 / 7],
  ['The PLAYER stands at [1,2].', 2 / 7],
  ['The player stands at (1, 2) and the box at (3,4); moves left: 7', 1],
  ['The player stands at (2, 1).', 0], // wrong coordinates: one of the words, none of the facts
  ['The player stands at (1,2), the box at (9,9).', (3 / 7) * 0.5],
  ['I have 7.0 of 12 moves', (2 / 7) * 0.5],
])('the grounding of %j', (thought, value) => {
  expect(grounding({ state, thought })).toBeCloseTo(value, 12);
});

test('a state of symbols has no grounding, and numbers in a pair are no numbers of their own', () => {
  expect(grounding({ state: '######\n#_P_O#\n', thought: 'the player' })).toBeUndefined();
  expect(grounding({ state: '(1,2)', thought: '1 and 2' })).toBe(0);
  expect(grounding({ state: '(01, -0)', thought: '[1,0]' })).toBe(1);
});
