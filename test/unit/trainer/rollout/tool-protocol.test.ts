// The texts of turns with tools.
import { expect, it } from 'vitest';
import { plainSyntax } from '../../../../extension/models/tokenizer/tool-syntax';
import {
  parseToolResponse,
  toolDemand,
  turnMessages,
  typeText,
} from '../../../../extension/trainer/rollout/tool-protocol';
import { asked } from './scripted-rollout';

const parameters = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    depth: { type: 'integer', default: 1 },
    mode: { enum: ['fast', 'slow'] },
    more: { type: 'array', items: { anyOf: [{ type: 'string' }, { const: null }] } },
    any: {},
  },
  required: ['path', 'mode'],
};
const tools = [{ name: 'look', description: 'Looks.', parameters }];
const protocol = { enable_think: true, action_sep: '||', max_actions_per_turn: 2 };

it('lists tools by their types if the template cannot', () => {
  expect(typeText(parameters)).toBe(
    '{"path": string, "depth"?: integer, "mode": "fast" | "slow", "more"?: [string | null, …], "any"?: any}',
  );
  const text = toolDemand({ tools, syntax: plainSyntax }, protocol);
  expect(text).toMatch(/^Begin with <think>.*<answer> \[your answer\] <\/answer>\.\nCall a tool by <tool_call>/);
  expect(text).toMatch(/\n{"name": "look", "arguments": {"path": string.*}}: Looks\.$/);
  const native = toolDemand(
    { tools, syntax: { calls: 'llama3', native: true } },
    { ...protocol, enable_think: false, answer_tag: 'ans' },
  );
  expect(native).toBe('Call tools, or write the answer as <ans> [your answer] </ans>.');
});

it('sends results in messages of their own, or together in a user message', () => {
  const prompt = { ...asked(2), results: ['1', '2'] };
  expect(turnMessages(prompt, { tools, syntax: { calls: 'hermes', native: true } }, protocol)).toEqual([
    { role: 'tool', content: '1' },
    { role: 'tool', content: '2' },
  ]);
  expect(turnMessages(prompt, { tools, syntax: plainSyntax }, protocol)).toEqual([
    { role: 'user', content: '<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>' },
  ]);
  expect(turnMessages(asked(1, 'Look.'), { tools, syntax: plainSyntax }, protocol)).toEqual([
    { role: 'user', content: 'Look.' },
  ]);
});

it('keeps an answer that looks like calls an answer', () => {
  const answer = '{"tool_calls":[{"name":"look","arguments":{}}]}';
  const { actions } = parseToolResponse(`<think>x</think><answer>${answer}</answer>`, protocol, {
    tools,
    syntax: plainSyntax,
  });
  expect(actions).toEqual([` ${answer}`]);
});

it.each([
  ['<think>no end <answer>1</answer>', null, []],
  ['<think>a</think> plain text', 'a', []],
  ['<think>a</think><answer> </answer>', 'a', []],
  ['<think>a</think>b<answer> 1 </answer>', 'a', ['1']],
])('parses %s', (raw, thought, actions) => {
  expect(parseToolResponse(raw, protocol, { tools, syntax: plainSyntax })).toMatchObject({ thought, actions });
});
