// Contexts of programs with real chat templates: continued conversations keep their sampled ids, a template that drops
// thoughts begins a new sample, and tools are rendered and parsed in the model's form.
import { describe, expect, test } from 'vitest';
import type { CallMessage, CallTool, ModelCall } from '../../../../envs/api/model-calls';
import { replyOf } from '../../../../envs/api/model-calls';
import type { ChatTokenizer } from '../../../../extension/models/tokenizer/chat-tokenizer';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { CallContext } from '../../../../extension/trainer/rollout/call-context';

const add: CallTool = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
};

/** A program's context, and the row of the engine as text. */
function open(folder: string, max_model_len = 20_000) {
  const tokenizer: ChatTokenizer = readTokenizer(folder, { variables: { date_string: '26 Jul 2024' } });
  const context = new CallContext(tokenizer, {
    ...{ max_model_len, response_length: 200 },
    syntax: tokenizer.toolSyntax('auto'),
  });
  let row: number[] = [];
  return {
    context,
    tokenizer,
    row: () => tokenizer.decode(row, { special: true }),
    /** Makes a call that is answered with a text, one character per token. Returns the reply as a message. */
    call(messages: CallMessage[], text: string, more: Partial<ModelCall> = {}): CallMessage {
      const { append, fresh } = context.prompt({ messages, tools: [], stop: [], ...more })!;
      const marks = text
        .split(/(<\/?[a-z_]+>|<\|python_tag\|>)/)
        .flatMap(part => (part.startsWith('<') ? [part] : [...part]));
      const ids = [...marks.flatMap(part => tokenizer.encode(part)), tokenizer.stopTokenIds[0]];
      row = [...(fresh ? [] : row), ...append, ...ids];
      context.accept({ ids, logprobs: ids.map(() => -1), finish: 'stop' });
      const { content, tool_calls } = context.reply.reply;
      return { role: 'assistant', content, ...(tool_calls.length > 0 && { tool_calls }) };
    },
  };
}

const user = (content: string): CallMessage => ({ role: 'user', content });

test('a program that sends its conversation back continues one sample', () => {
  const { context, call, row } = open('test/golden/chat/qwen2.5');
  const chat: CallMessage[] = [{ role: 'system', content: 'Play.' }, user('a')];
  chat.push(call(chat, 'Up it goes'));
  chat.push(user('b'));
  call(chat, 'Down');
  expect(context.samples()).toHaveLength(1);
  expect(row()).toBe(
    '<|im_start|>system\nPlay.<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nUp it goes<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\nDown<|im_end|>',
  );
});

test('a template that drops past thoughts begins a new sample, without the thought', () => {
  const { context, call, row } = open('test/golden/chat/qwen3');
  const chat = [user('a')];
  chat.push(call(chat, '<think>\nhm\n</think>\n\nUp'));
  expect(chat[1].content).toBe('<think>\nhm\n</think>\n\nUp');
  chat.push(user('b'));
  call(chat, '<think>\nho\n</think>\n\nDown');
  const samples = context.samples();
  expect(samples.map(({ turns }) => turns.map(({ turn }) => turn))).toEqual([[1], [2]]);
  expect(row()).not.toContain('hm');
  expect(row()).toContain('<|im_start|>assistant\nUp<|im_end|>');
});

describe.each([
  ['qwen2.5', 'test/golden/chat/qwen2.5', '<tool_call>{"name":"add","arguments":{"a":1,"b":2}}</tool_call>'],
  ['qwen3', 'test/golden/chat/qwen3', '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'],
  ['llama3', 'test/golden/chat/llama3', '{"name":"add","parameters":{"a":1,"b":2}}'],
  ['no tools', 'media/models/ragen-tiny', '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'],
])('tools with the template of %s', (_, folder, written) => {
  test('a call and its result continue one sample, whatever the white space of the arguments', () => {
    const { context, call, row } = open(folder);
    const chat = [user('What is 1 + 2?')];
    const reply = call(chat, written, { tools: [add] });
    expect(reply.tool_calls).toEqual([{ name: 'add', arguments: '{"a":1,"b":2}' }]);
    chat.push({ ...reply, tool_calls: [{ name: 'add', arguments: '{ "a": 1, "b": 2 }' }] });
    chat.push({ role: 'tool', content: '3' });
    call(chat, 'It is 3.', { tools: [add] });
    const [sample, ...others] = context.samples();
    expect(others).toEqual([]);
    expect(sample.turns).toHaveLength(2);
    expect(row()).toContain(written); // as sampled
    expect(row()).toContain('Adds two numbers.');
  });
});

test('a call that cannot be read stays a text', () => {
  const { context, call } = open('test/golden/chat/qwen2.5');
  const text = '<tool_call>{"name": "add", "arguments": </tool_call>';
  expect(call([user('a')], text, { tools: [add] })).toEqual({ role: 'assistant', content: text });
  expect(context.reply.response).toMatchObject({ malformed: true, answer: text });
});

test('a stop text ends the content, and the sampled ids stay complete', () => {
  const { context, call, row } = open('test/golden/chat/qwen2.5');
  const chat = [user('a')];
  chat.push(call(chat, 'Think\nObservation: x', { stop: ['Observation:'] }));
  expect(chat[1].content).toBe('Think\n');
  chat.push(user('b'));
  call(chat, 'Done');
  expect(context.samples()).toHaveLength(1);
  expect(row()).toContain('Think\nObservation: x<|im_end|>');
});

test('the action has the reply and its token counts', () => {
  const { context, call } = open('test/golden/chat/qwen2.5');
  call([user('a')], 'ab');
  const [action] = context.reply.response.actions;
  expect(replyOf(action)).toMatchObject({ content: 'ab', finish: 'stop', completion_tokens: 3 });
});

test("the call's own limit is used if it is lower, and a prompt without room is refused", () => {
  const { context, tokenizer } = open('test/golden/chat/qwen2.5', 100);
  const small: ModelCall = { messages: [user('a')], tools: [], stop: [], max_tokens: 5 };
  expect(context.prompt(small)!.limits.max_new_tokens).toBe(5);
  expect(context.prompt({ ...small, max_tokens: 500 })).toBeNull(); // 200 tokens do not fit into 100
  expect(context.refused).toBe(tokenizer.encodePrompt([{ role: 'user', content: 'a' }], '').length);
});
