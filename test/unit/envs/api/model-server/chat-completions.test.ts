// OpenAI's chat completions: what a request asks of the policy, what is refused and with which sentence, and the forms of
// replies and streams.
import { describe, expect, test } from 'vitest';
import type { ModelReply } from '../../../../../envs/api/model-calls';
import { chatCompletions } from '../../../../../envs/api/model-server/chat-completions';
import { RequestError } from '../../../../../envs/api/model-server/wire';

const messages = [{ role: 'user', content: 'a' }];
const reply = (changes: Partial<ModelReply> = {}): ModelReply => ({
  ...{ content: 'b', tool_calls: [], finish: 'stop', prompt_tokens: 3, completion_tokens: 2 },
  ...changes,
});
const called = reply({ content: '', tool_calls: [{ name: 'add', arguments: '{"a":1}' }] });
const jsonOf = (body: object, given: ModelReply) => {
  const response = chatCompletions.parse({ model: 'm', messages, ...body }).respond(given, '7');
  if (!('json' in response)) throw new Error('a stream');
  return response.json as { choices: { message: object; finish_reason: string }[]; usage: object };
};

test('a conversation with tools becomes a call', () => {
  const { call } = chatCompletions.parse({
    model: 'm',
    messages: [
      { role: 'developer', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'x' },
          { type: 'text', text: 'y' },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: '1', content: '3' },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    stop: 'END',
    max_tokens: 9,
    max_completion_tokens: 8,
    temperature: 0.3,
    seed: 4,
  });
  expect(call).toEqual({
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'x\ny' },
      { role: 'assistant', content: '', tool_calls: [{ name: 'f', arguments: '{}' }] },
      { role: 'tool', content: '3' },
    ],
    tools: [{ name: 'f', description: '', parameters: { type: 'object' } }],
    stop: ['END'],
    max_tokens: 8,
  });
});

test('tool_choice none shows no tools', () => {
  const tools = [{ type: 'function', function: { name: 'f' } }];
  expect(chatCompletions.parse({ messages, tools, tool_choice: 'none' }).call.tools).toEqual([]);
  expect(chatCompletions.parse({ messages, tools, tool_choice: 'required' }).call.tools).toHaveLength(1);
});

test('a reply has its text, its reason and its usage', () => {
  const answer = jsonOf({}, reply());
  expect(answer).toMatchObject({ id: 'chatcmpl-7', object: 'chat.completion', model: 'm' });
  expect(answer.choices).toEqual([
    { index: 0, message: { role: 'assistant', content: 'b', refusal: null }, logprobs: null, finish_reason: 'stop' },
  ]);
  expect(answer.usage).toEqual({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
  expect(jsonOf({}, reply({ finish: 'length' })).choices[0].finish_reason).toBe('length');
  expect(jsonOf({}, called).choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: { content: null, tool_calls: [{ id: 'call_7_0', function: { name: 'add', arguments: '{"a":1}' } }] },
  });
});

test('a stream has the same content as a reply, and ends with [DONE]', () => {
  const request = { model: 'm', messages, stream: true, stream_options: { include_usage: true } };
  const response = chatCompletions.parse(request).respond({ ...called, content: 'hm' }, '7');
  if (!('events' in response)) throw new Error('no stream');
  const data = response.events.map(event => event.data);
  expect(data.at(-1)).toBe('[DONE]');
  const chunks = data.slice(0, -1).map(text => JSON.parse(text) as Record<string, unknown>);
  expect(chunks.map(({ choices }) => choices)).toMatchObject([
    [{ delta: { role: 'assistant', content: '' }, finish_reason: null }],
    [{ delta: { content: 'hm' }, finish_reason: null }],
    [{ delta: { tool_calls: [{ index: 0, id: 'call_7_0', function: { name: 'add' } }] }, finish_reason: null }],
    [{ delta: {}, finish_reason: 'tool_calls' }],
    [],
  ]);
  expect(chunks.at(-1)!.usage).toMatchObject({ total_tokens: 5 });
});

describe('refused requests', () => {
  test.each([
    [{ messages: [] }, /^messages is empty: send/],
    [{ messages: 'a' }, /^messages is "a": set it to a list/],
    [{ messages: [{ role: 'robot', content: 'a' }] }, /^messages\[0\]\.role is "robot": use one of system/],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] },
      /^messages\[0\]\.content\[0\] has the type image_url/,
    ],
    [{ messages, n: 2 }, /^n is 2, which the gateway does not offer/],
    [{ messages, response_format: { type: 'json_object' } }, /^response_format is /],
    [{ messages, logprobs: true }, /^logprobs is true/],
    [{ messages, guided_json: {} }, /^guided_json is no parameter of the gateway/],
    [{ messages, max_tokens: 0 }, /^max_tokens is 0: set it to an integer/],
    [{ messages, stop: [''] }, /^stop is /],
    [{ messages, tools: [{ type: 'web_search' }] }, /^tools\[0\] has the type "web_search"/],
    ['text', /^the body is not a JSON object/],
  ])('%j', (body, sentence) => {
    let error: unknown;
    try {
      chatCompletions.parse(body);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(RequestError);
    expect((error as RequestError).status).toBe(400);
    expect((error as RequestError).message).toMatch(sentence);
  });

  test('values that ask for nothing special are accepted', () => {
    const body = { messages, n: 1, response_format: { type: 'text' }, logprobs: false, logit_bias: {}, user: null };
    expect(chatCompletions.parse(body).call.messages).toHaveLength(1);
  });
});
