// Tool calls as models write them, well-formed and not.
import { describe, expect, it } from 'vitest';
import { parseCalls } from '../../../../extension/trainer/rollout/tool-calls';

const weather = (city: string) => ({ name: 'weather', arguments: { city } });

describe('calls of Qwen2.5 and Qwen3', () => {
  const read = (text: string) => parseCalls(text, 'hermes');

  it('reads several calls and the text around them', () => {
    const text =
      'Let me look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n' +
      '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call> Done.';
    expect(read(text)).toEqual({ calls: [weather('Oslo'), weather('Rome')], content: 'Let me look.\n\n Done.' });
  });

  it.each([
    ['arguments in quotes', '{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}', weather('Oslo')],
    ['the key of Llama', '{"name": "weather", "parameters": {"city": "Oslo"}}', weather('Oslo')],
    ['no arguments', '{"name": "now"}', { name: 'now', arguments: {} }],
    [
      'a tag in an argument',
      '{"name": "say", "arguments": {"x": "<tool_response>"}}',
      { name: 'say', arguments: { x: '<tool_response>' } },
    ],
  ])('accepts %s', (_, json, call) => {
    expect(read(`<tool_call>${json}</tool_call>`).calls).toEqual([call]);
  });

  it('accepts a last call without its closing tag', () => {
    expect(read('<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}').calls).toEqual([weather('Oslo')]);
  });

  it.each([
    ['{"name": "weather", "arguments": {"city": "Oslo"}', /not a JSON object of the form/],
    ['weather(Oslo)', /not a JSON object of the form/],
    ['[{"name": "weather", "arguments": {}}]', /not a JSON object of the form/],
    ['{"arguments": {}}', /has no name/],
    ['{"name": 3, "arguments": {}}', /has no name/],
    ['{"name": "weather", "arguments": ["Oslo"]}', /arguments of the tool call are not a JSON object/],
    ['{"name": "weather", "arguments": "Oslo"}', /arguments of the tool call are not a JSON object/],
    ['', /not a JSON object of the form/],
  ])('says what is wrong with %s', (json, problem) => {
    const { calls } = read(`<tool_call>${json}</tool_call><tool_call>{"name": "now", "arguments": {}}</tool_call>`);
    expect(calls).toEqual([{ problem: expect.stringMatching(problem) as string }, { name: 'now', arguments: {} }]);
  });

  it('says that a broken call is not closed', () => {
    expect(read('<tool_call>{"name": "wea').calls).toEqual([
      { problem: 'the tool call is not closed with </tool_call>' },
    ]);
  });

  it('finds no call in an answer', () => {
    expect(read('It is <answer>12</answer>')).toEqual({ calls: [], content: 'It is <answer>12</answer>' });
  });
});

describe('calls of Llama 3', () => {
  const read = (text: string, tools: string[] = []) => parseCalls(text, 'llama3', tools);

  it.each([
    ['one object', '{"name": "weather", "parameters": {"city": "Oslo"}}', [weather('Oslo')]],
    [
      'objects separated by semicolons',
      '{"name": "weather", "parameters": {"city": "Oslo"}}; {"name": "weather", "parameters": {"city": "Ro;me}"}}',
      [weather('Oslo'), weather('Ro;me}')],
    ],
    ['an object after the tag', '<|python_tag|>{"name": "weather", "parameters": {"city": "Oslo"}}', [weather('Oslo')]],
    [
      'the form of built-in tools',
      '<|python_tag|>weather.call(city="Oslo", days=3)',
      [{ name: 'weather', arguments: { city: 'Oslo', days: 3 } }],
    ],
  ])('reads %s', (_, text, calls) => {
    expect(read(text)).toEqual({ calls, content: '' });
  });

  it('sends code after the tag to an interpreter, if there is one', () => {
    expect(read('<|python_tag|>print(1)', ['python']).calls).toEqual([
      { name: 'python', arguments: { code: 'print(1)' } },
    ]);
    expect(read('<|python_tag|>print(1)').calls).toEqual([
      { problem: expect.stringContaining('no tool that executes code') as string },
    ]);
    expect(read('<|python_tag|> ', ['python']).calls).toEqual([
      { problem: expect.stringContaining('is empty') as string },
    ]);
  });

  it('takes JSON without a name, and text before JSON, for an answer', () => {
    for (const text of ['{"total": 3}', 'The call would be {"name": "f"}', '<answer>3</answer>'])
      expect(read(text)).toEqual({ calls: [], content: text });
  });

  it.each([
    ['{"name": "weather", "parameters": {"city": "Oslo"}', /not a JSON object of the form/],
    ['{"name": "weather", "parameters": [1]}', /parameters of the tool call are not a JSON object/],
    ['<|python_tag|>{"name": "", "parameters": {}}', /has no name/],
  ])('says what is wrong with %s', (text, problem) => {
    expect(read(text).calls).toEqual([{ problem: expect.stringMatching(problem) as string }]);
  });
});
