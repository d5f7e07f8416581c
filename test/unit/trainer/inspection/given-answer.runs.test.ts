// Answers given by the user: the unchanged part of the recorded answer keeps its sampled ids, new text is tokenized,
// and the parser extracts the intended answer.
import { expect, test } from 'vitest';
import { givenTokens } from '../../../../extension/trainer/inspection/given-answer';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { parseResponse } from '../../../../extension/trainer/rollout/turn-protocol';

const tokenizer = readTokenizer('media/models/ragen-tiny');
const protocol = { enable_think: true, action_sep: '||', max_actions_per_turn: 5 };
const text = 'The goal is above. </think><answer> Up || Up </answer>';
const recorded = { raw: `<think>${text}`, ids: [...tokenizer.encode(text), tokenizer.stopTokenIds[0]] };
const read = (prefix: string, ids: readonly number[]) => parseResponse(prefix + tokenizer.decode(ids), protocol);

test("another answer after the recorded thought keeps the thought's tokens", () => {
  const { ids, kept, complete } = givenTokens(tokenizer, '<think>', { answer: 'Left' }, recorded);
  expect(complete).toBe(true);
  expect(kept).toBeGreaterThan(2);
  expect(ids.slice(0, kept)).toEqual(recorded.ids.slice(0, kept));
  expect(ids.at(-1)).toBe(tokenizer.stopTokenIds[0]);
  expect(read('<think>', ids)).toMatchObject({ thought: 'The goal is above.', actions: ['Left'] });
});

test('after a changed thought, the policy samples the answer, or the answer is given as well', () => {
  const thought = givenTokens(tokenizer, '<think>', { thought: 'Go left.' }, recorded);
  expect([thought.complete, thought.kept, tokenizer.decode(thought.ids)]).toEqual([false, 0, 'Go left.</think>']);
  const both = givenTokens(tokenizer, '<think>', { thought: 'Go left.', answer: 'Left || Up' }, recorded);
  expect(both.complete).toBe(true);
  expect(read('<think>', both.ids)).toMatchObject({ thought: 'Go left.', actions: ['Left', 'Up'] });
});

test('without given texts the policy plays the turn; without a recorded thought, the kept thought is empty', () => {
  expect(givenTokens(tokenizer, '<think>', {}, recorded)).toEqual({ ids: [], kept: 0, complete: false });
  for (const from of [null, { raw: '<think>no end', ids: tokenizer.encode('no end') }]) {
    const { ids, kept } = givenTokens(tokenizer, '<think>', { answer: 'Up' }, from);
    expect([kept, read('<think>', ids)]).toMatchObject([0, { thought: '', actions: ['Up'] }]);
  }
  const plain = givenTokens(tokenizer, '<answer>', { answer: 'Up' }, null);
  expect(tokenizer.decode(plain.ids)).toBe('Up</answer>');
  const afterCalls = givenTokens(tokenizer, '', { answer: 'Up' }, { raw: '<tool_call>{}</tool_call>', ids: [] });
  expect(tokenizer.decode(afterCalls.ids)).toBe('<answer>Up</answer>');
});

test('an answer in <ans> is replaced like one in <answer>', () => {
  const short = { ...protocol, answer_tag: 'ans' as const };
  const said = text.replaceAll('answer>', 'ans>');
  const from = { raw: `<think>${said}`, ids: tokenizer.encode(said) };
  const { ids, kept } = givenTokens(tokenizer, '<think>', { answer: 'Left' }, from, 'ans');
  expect(kept).toBeGreaterThan(2);
  expect(parseResponse(`<think>${tokenizer.decode(ids)}`, short)).toMatchObject({
    thought: 'The goal is above.',
    actions: ['Left'],
  });
  const both = givenTokens(tokenizer, '<think>', { thought: 'Go.', answer: 'Up' }, null, 'ans');
  expect(tokenizer.decode(both.ids)).toBe('Go.</think><ans>Up</ans>');
  expect(tokenizer.decode(givenTokens(tokenizer, '<ans>', { answer: 'Up' }, null, 'ans').ids)).toBe('Up</ans>');
});

test('a token that extends into the answer is not kept', () => {
  const glued = ['Go.', '</think>', '<answer> U', 'p', '</answer>'];
  const encode = (given: string): number[] => Array.from(given, c => 100 + c.charCodeAt(0));
  const decode = (ids: readonly number[]): string =>
    ids.map(id => (id < 100 ? glued[id] : String.fromCharCode(id - 100))).join('');
  const given = givenTokens(
    { encode, decode, stopTokenIds: [] },
    '<think>',
    { answer: 'L' },
    { raw: `<think>${glued.join('')}`, ids: [0, 1, 2, 3, 4] },
  );
  expect(given.kept).toBe(2);
  expect(decode(given.ids)).toBe('Go.</think><answer>L</answer>');
});
