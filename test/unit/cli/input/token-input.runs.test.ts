// Input of `ragen score` and `ragen generate`: both formats are read alike, and each error is one sentence with file,
// line, the path of the value and the remedy.
import { describe, expect, test } from 'vitest';
import { parseInput } from '../../../../extension/cli/input/token-input';
import { refusalOf } from '../../../support/refusal';

const messages = [
  { role: 'system', content: 'You are "brief".' },
  { role: 'user', content: 'a [b, {c' },
];

/** The message with which an input is refused. */
const refusal = (text: string): string => refusalOf(() => parseInput(text, 'rows.json'));

describe('rows', () => {
  const rows = [{ tokens: [1, 2] }, { messages }, { tokens: [0], note: 'other keys are left alone' }];
  const forms = {
    'a JSON array': JSON.stringify(rows),
    'a pretty one with a byte order mark': `\uFEFF${JSON.stringify(rows, null, 2)}\n`,
    'JSON lines': `${rows.map(row => JSON.stringify(row)).join('\n')}\n`,
    'JSON lines with empty ones and carriage returns': `\n${rows.map(row => JSON.stringify(row)).join('\r\n\r\n')}`,
  };
  test.each(Object.entries(forms))('are read from %s', (_, text) => {
    expect(parseInput(text, 'rows.json').map(({ location: _place, ...row }) => row)).toEqual([
      { tokens: [1, 2] },
      { messages },
      { tokens: [0] },
    ]);
  });

  test('are read with their line numbers', () => {
    const array =
      '[\n  {"tokens": [1]}, {"messages": [\n {"role": "user", "content": "]\\"\\n[,{"}]},\n\n{\n"tokens": [3]}]';
    expect(parseInput(array, 'f').map(({ location }) => location())).toEqual(['f:2: [0]', 'f:2: [1]', 'f:5: [2]']);
    const lines = '\n{"tokens": [1]}\n\n{"tokens": [2]}\n';
    expect(parseInput(lines, 'f').map(({ location }) => location())).toEqual(['f:2: [0]', 'f:4: [1]']);
  });

  test('from an empty array: none', () => expect(parseInput('[]', 'f')).toEqual([]));
});

describe('an invalid input', () => {
  test.each([
    ['', /^rows\.json is empty: give a JSON array of \{"tokens": \[…\]\} or/],
    [' \n\t', /^rows\.json is empty: /],
    ['null', /^rows\.json contains null, not an array: give a JSON array/],
    ['"tokens"', /^rows\.json contains the string "tokens", not an array: /],
    ['{\n "tokens": [1]\n}', /^rows\.json contains an object, not an array: put the object into \[ \]$/],
    ['[{"tokens": [1]},\n {"tokens": 1 2}]', /^rows\.json:2 is not JSON \(.+\): give a JSON array/],
    ['[{"tokens": [1]},\n', /^rows\.json:\d is not JSON \(.+\): give a JSON array/],
    ['tokens: [1]', /^rows\.json.* is not JSON \(.+\): give a JSON array/],
    [
      '{"tokens": [1]}\n{"tokens": [1}\n',
      /^rows\.json:2 is not JSON \(.+\): give a JSON array, or one object per line$/,
    ],
    ['[{"tokens": [1]},\n 5]', /^rows\.json:2: \[1\] is the number 5: give \{"tokens"/],
    ['[[1, 2]]', /^rows\.json:1: \[0\] is an array: give /],
    ['[\n{"text": "x"}]', /^rows\.json:2: \[0\] has neither "tokens" nor "messages": give /],
    ['{"tokens": [1]}\n\n{}', /^rows\.json:3: \[1\] has neither "tokens" nor "messages": give /],
    ['[{"tokens": [1], "messages": []}]', /^rows\.json:1: \[0\] has both "tokens" and "messages": give one of them$/],
    ['[{"tokens": 3}]', /^rows\.json:1: \[0\]\.tokens is the number 3: give an array of token ids$/],
    ['[{"tokens": null}]', /\[0\]\.tokens is null: /],
    ['[{"tokens": []}]', /\[0\]\.tokens is empty: give at least one token id$/],
    ['[{"tokens": [1, 2.5]}]', /\[0\]\.tokens\[1\] is 2\.5: use a whole number from 0 on$/],
    ['[{"tokens": [-1]}]', /\[0\]\.tokens\[0\] is -1: /],
    ['[{"tokens": ["1"]}]', /\[0\]\.tokens\[0\] is "1": /],
    ['[{"tokens": [1e400]}]', /\[0\]\.tokens\[0\] is Infinity: /],
    ['[{"messages": {}}]', /\[0\]\.messages is an object: give an array of messages$/],
    ['[{"messages": []}]', /\[0\]\.messages is empty: give at least one message$/],
    ['[{"messages": ["hi"]}]', /\[0\]\.messages\[0\] is the string "hi": give \{"role", "content"\}$/],
    [
      '[{"messages": [{"role": "user", "content": "x"}, {"role": "tool", "content": "x"}]}]',
      /^rows\.json:1: \[0\]\.messages\[1\]\.role is "tool": use one of system, user, assistant$/,
    ],
    ['[{"messages": [{"content": "x"}]}]', /\[0\]\.messages\[0\]\.role is undefined: use one of/],
    ['[{"messages": [{"role": "user", "content": 7}]}]', /\[0\]\.messages\[0\]\.content is 7: give a text$/],
  ])('is refused: %j', (text, sentence) => expect(refusal(text)).toMatch(sentence));
});
