// Scores of answers against worked examples, and the answers extracted from free text.
import { describe, expect, test } from 'vitest';
import { answerIn, normalized, scoreAnswer } from '../../../../envs/search/scoring';

test.each([
  ['The  Amber, Tide!', 'amber tide'],
  ["an author's a-the", 'authors athe'],
  ['Theatre an', 'theatre'],
])('the normal form of %j is %j', (text, form) => expect(normalized(text)).toBe(form));

test.each([
  ['the henry platt!', 'Henry Platt', true, 1],
  ['Henry Platt Jr', 'Henry Platt', false, 0.8],
  ['Platt family of singers', 'Henry Platt', false, 1 / 3],
  ['Ben Smith of the Platt', 'Henry Platt', false, 1 / 3],
  ['some man called Platt from New York', 'Henry Platt', false, 2 / 9],
  ['yes it is', 'yes', false, 0],
  ['no', 'no way', false, 0],
  ['Yes.', 'yes', true, 1],
  ['red red', 'red', false, 2 / 3],
  ['', 'Henry Platt', false, 0],
])('the answer %j is scored against %j', (answer, gold, exact, f1) => {
  const score = scoreAnswer(answer, [gold]);
  expect(score.exact).toBe(exact);
  expect(score.f1).toBeCloseTo(f1, 9);
});

test('the best of several correct answers counts', () => {
  expect(scoreAnswer('Platt', ['Smith', 'Henry Platt', 'J Platt Major'])).toEqual({ exact: false, f1: 2 / 3 });
});

describe('the answer extracted from a free text', () => {
  test.each([
    ['<think>so it is 5</think> It must be \\boxed{ 42 } or **43**.', '42'],
    ['I found ** ** and **Henry Platt** here', 'Henry Platt'],
    ['*ab* *Platt* it is', 'Platt'],
    ['The correct answer is: Henry Platt. Or not.', 'Henry Platt'],
    ['He was old, therefore Platt it is! Yes', 'Platt it is'],
    ['Hm. It was Henry who sang. Later', 'It was Henry who sang'],
    ['a b', 'a b'],
  ])('is found in %j', (text, answer) => expect(answerIn(text)).toBe(answer));
});
