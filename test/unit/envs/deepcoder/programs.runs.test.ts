// Extraction of programs from answers, of tasks from rows, and the comparison with expected output.
import { describe, expect, test } from 'vitest';
import { inputText, isOutput, isReturned, problemOf } from '../../../../envs/deepcoder/problems';
import { callInput, codeOf, returnedIn, withStarter } from '../../../../envs/deepcoder/programs';

test.each([
  ['\nprint(1)\n\n', 'print(1)', 'python'],
  ['Here:\n```python\nprint(1)\n```\nDone', 'print(1)', 'python'],
  ['```js\nconsole.log(a || b)\n```', 'console.log(a || b)', 'javascript'],
  ['```\nx = 1\n```', 'x = 1', 'python'],
  ['````py\nx\n\n```', 'x\n', 'python'],
  ['```py```\n```', '', 'python'],
  ['``` x', '``` x', 'python'],
  ['\n\n', '', 'python'],
])('the program in the answer %j is extracted', (answer, code, language) =>
  expect(codeOf(answer, 'python')).toEqual({ code, language }),
);

test.each(['`', '```', '\n', '```x\n', '\n```'])('an answer of repeated %j is parsed in linear time', part => {
  const answer = part.repeat(2 ** 16) + 'x';
  const start = process.cpuUsage();
  codeOf(answer, 'python');
  expect(process.cpuUsage(start).user).toBeLessThan(1_000_000); // µs; quadratic time would take many seconds
});

describe('starter code', () => {
  const head = 'class Solution:\n    def f(self, n: int) -> int:\n        ';
  test.each([
    [
      'is left out where the answer has the class',
      head,
      'class Solution:\n    def f(self, n): return n',
      'class Solution:\n    def f(self, n): return n',
    ],
    [
      'takes a method in',
      head,
      'def f(self, n):\n    return n\n\n',
      'class Solution:\n    def f(self, n):\n        return n\n\n',
    ],
    ['without a body gives way', head, 'import math\ndef f(n): return n', 'import math\ndef f(n): return n'],
    ['stands before the rest', 'limit = 5\n', 'def f(n): return limit', 'limit = 5\n\ndef f(n): return limit'],
    ['may be none', ' \n', 'x', 'x'],
  ])('%s', (_, starter, code, whole) => expect(withStarter(code, starter)).toBe(whole));
});

test('rows of every data set format become tasks', () => {
  const stdin = { input: '1\n', output: '2', testtype: 'stdin_stdout' };
  expect(problemOf({ problem: 'p', tests: JSON.stringify([stdin]), solutions: ['a', 'b'] })).toEqual({
    text: 'p',
    starter: '',
    tests: [{ input: '1\n', expected: '2' }],
    solution: 'a',
  });
  expect(
    problemOf({
      question: 'q',
      problem: 'p',
      tests: [{ ...stdin, testtype: 'functional' }],
      metadata: '{"func_name":"f"}',
      starter_code: 's',
    }),
  ).toMatchObject({ text: 'q', functionName: 'f', starter: 's' });
  expect(problemOf({ problem: 'p', tests: [stdin], metadata: { func_name: 'f' } }).functionName).toBeUndefined();
  expect(problemOf({ prompt: 'p', tests: '{"fn_name":"g","inputs":[[1,2]],"outputs":[[3]]}' })).toMatchObject({
    functionName: 'g',
    tests: [{ input: [1, 2], expected: [3] }],
  });
  expect(
    problemOf({ prompt: 'p', tests: { fn_name: 'g(); evil', inputs: ['1'], outputs: [['2', '3'], '4'] } }),
  ).toEqual({
    text: 'p',
    starter: '',
    tests: [{ input: '1', expected: ['2', '3'] }],
    solution: undefined,
  });
  expect(problemOf({ problem: 'p', tests: 'nonsense' }).tests).toEqual([]);
  expect(() => problemOf({ tests: [] })).toThrow('no text in a column');
});

test('inputs are passed in the expected form', () => {
  expect([inputText('a\n'), inputText(['a', 1]), inputText(undefined)]).toEqual(['a\n', 'a\n1', '']);
  expect([callInput('1\n2'), callInput([1, 2]), callInput(7)]).toEqual([
    '{"lines":"1\\n2"}',
    '{"values":[1,2]}',
    '{"values":[7]}',
  ]);
  expect([returnedIn('noise\n\u001e{"text":"1","value":1}'), returnedIn('\u001e{'), returnedIn('1')]).toEqual([
    { text: '1', value: 1 },
    undefined,
    undefined,
  ]);
});

test.each([
  ['1 2 \n3\n\n', '1 2\n3', true],
  ['1 2', ['1', '2'], false],
  ['1\n2\n', ['1', '2'], true],
  ['1  2', '1 2', false],
  ['\n5', 5, true],
])('output %j is compared with %j', (stdout, expected, same) => expect(isOutput(stdout, expected)).toBe(same));

test.each([
  [{ text: '[1, 2]', value: [1, 2] }, '[1,2]', true],
  [{ text: '[1, 2]', value: [1, 2] }, [1, 2], true],
  [{ text: 'True', value: true }, 'true', true],
  [{ text: 'True', value: true }, true, true],
  [{ text: 'abc', value: 'abc' }, '"abc"', true],
  [{ text: 'abc', value: 'abc' }, 'abc', true],
  [{ text: "['a', None]", value: ['a', null] }, ['a', null], true],
  [{ text: '{1}' }, '{1}', true],
  [{ text: '1', value: 1 }, '2', false],
  [{ text: '1', value: 1 }, 'nonsense', false],
])('return value %j is compared with %j', (returned, expected, same) =>
  expect(isReturned(returned, expected)).toBe(same),
);

test.each(['null', '5', '"x"', '[]', '{}', '{"text":5}', '{"text":{}}', '{"text":null,"value":1}', '{"text":'])(
  'a program that forges its return value with %s returns nothing',
  forged => expect(returnedIn(`\u001e${forged}`)).toBeUndefined(),
);

test('a forged value of any depth does not match the expected one', () => {
  const returned = returnedIn(`\u001e{"text":"x","value":${'['.repeat(400_000)}${']'.repeat(400_000)}}`)!;
  expect(isReturned(returned, [1])).toBe(false);
});
