// Texts of rollouts as messages, and responses as thought and answer.
import { expect, it } from 'vitest';
import { chatMessages, conversation, parsedResponse } from '../../../extension/foreign-runs/chat-turns';

const say = (content: string, reasoning?: string) =>
  parsedResponse({ role: 'assistant', content, ...(reasoning !== undefined && { reasoning }) });

it('splits a prompt and its completion with and without the template’s markers', () => {
  const marked = conversation(
    '<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n',
    'left<|im_end|>\n<|im_start|>user\nwall<|im_end|>\n<|im_start|>assistant\nright<|im_end|>\n',
  );
  const bare = conversation('user\nGo\nassistant\n', 'left\nuser\nwall\nassistant\nright\n');
  const expected = [
    { role: 'user', content: 'Go' },
    { role: 'assistant', content: 'left' },
    { role: 'user', content: 'wall' },
    { role: 'assistant', content: 'right' },
  ];
  expect(marked).toEqual(expected);
  expect(bare).toEqual(expected);
});

it('reads thoughts in tags, after a prefilled tag, and in a separate field', () => {
  expect(say('<think>a</think><answer>b</answer>')).toEqual({ thought: 'a', answer: 'b' });
  expect(say('<think>a</think>\nb')).toEqual({ thought: 'a', answer: 'b' });
  expect(say('a</think> b')).toEqual({ thought: 'a', answer: 'b' });
  expect(say('b', 'a')).toEqual({ thought: 'a', answer: 'b' });
  expect(say('b')).toEqual({ thought: '', answer: 'b' });
  expect(say('')).toEqual({ thought: null, answer: null });
});

it('converts messages with parts, images and tool calls; other values are dropped', () => {
  const calls = [{ function: { name: 'move', arguments: '{"to":1}' } }];
  expect(
    chatMessages([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: 'x' } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: calls },
      { content: 'no role' },
      7,
    ]),
  ).toEqual([
    { role: 'user', content: 'see\n[image]' },
    { role: 'assistant', content: '<tool_call>move {"to":1}</tool_call>' },
  ]);
});
