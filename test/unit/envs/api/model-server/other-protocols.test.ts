// OpenAI's Responses and Anthropic's Messages: what a request asks of the policy, and the forms of replies and streams.
import { describe, expect, test } from 'vitest';
import type { ModelReply } from '../../../../../envs/api/model-calls';
import { anthropicMessages } from '../../../../../envs/api/model-server/anthropic-messages';
import { responses } from '../../../../../envs/api/model-server/responses';
import type { Protocol } from '../../../../../envs/api/model-server/wire';

const reply = (changes: Partial<ModelReply> = {}): ModelReply => ({
  ...{ content: 'b', tool_calls: [], finish: 'stop', prompt_tokens: 3, completion_tokens: 2 },
  ...changes,
});
const called = reply({ content: 'hm', tool_calls: [{ name: 'add', arguments: '{"a":1}' }] });
const jsonOf = (protocol: Protocol, body: object, given: ModelReply) => {
  const response = protocol.parse(body).respond(given, '7');
  if (!('json' in response)) throw new Error('a stream');
  return response.json;
};
const eventsOf = (protocol: Protocol, body: object, given: ModelReply) => {
  const response = protocol.parse({ ...body, stream: true }).respond(given, '7');
  if (!('events' in response)) throw new Error('no stream');
  return response.events.map(({ event, data }) => ({ event, body: JSON.parse(data) as Record<string, unknown> }));
};

describe('Responses', () => {
  const input = [{ role: 'user', content: 'a' }];

  test('items become messages', () => {
    const { call } = responses.parse({
      model: 'm',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'x' }] },
        { type: 'reasoning', id: 'r', summary: [] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hm' }] },
        { type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
        { type: 'function_call', call_id: '2', name: 'g', arguments: '{}' },
        { type: 'function_call_output', call_id: '1', output: '3' },
        { type: 'function_call_output', call_id: '2', output: [{ type: 'input_text', text: '4' }] },
      ],
      tools: [{ type: 'function', name: 'f', parameters: { type: 'object' }, strict: true }],
      max_output_tokens: 9,
    });
    expect(call).toEqual({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: 'hm',
          tool_calls: [
            { name: 'f', arguments: '{}' },
            { name: 'g', arguments: '{}' },
          ],
        },
        { role: 'tool', content: '3' },
        { role: 'tool', content: '4' },
      ],
      tools: [{ name: 'f', description: '', parameters: { type: 'object' } }],
      max_tokens: 9,
      stop: [],
    });
    expect(responses.parse({ input: 'a' }).call.messages).toEqual([{ role: 'user', content: 'a' }]);
  });

  test('a reply has items, usage and a status', () => {
    expect(jsonOf(responses, { input }, called)).toMatchObject({
      object: 'response',
      status: 'completed',
      output: [
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hm' }] },
        { type: 'function_call', call_id: 'call_7_0', name: 'add', arguments: '{"a":1}' },
      ],
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    });
    expect(jsonOf(responses, { input }, reply({ finish: 'length' }))).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
  });

  test('a stream has the items in pieces, and ends with the response', () => {
    const events = eventsOf(responses, { input }, called);
    expect(events.map(({ event }) => event)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(events.map(({ body }) => body.sequence_number)).toEqual(events.map((_, i) => i));
    expect(events.every(({ event, body }) => body.type === event)).toBe(true);
  });

  test.each([
    [{ input, previous_response_id: 'r' }, /^previous_response_id is no parameter of the gateway/],
    [{ input: [{ type: 'computer_call' }] }, /^input\[0\] has the type "computer_call"/],
    [{ input, tools: [{ type: 'web_search' }] }, /^tools\[0\] has the type "web_search"/],
    [{ input, text: { format: { type: 'json_schema' } } }, /^text is /],
  ])('%j is refused', (body, sentence) => {
    expect(() => responses.parse(body)).toThrow(sentence);
  });
});

describe('Messages', () => {
  const messages = [{ role: 'user', content: 'a' }];

  test('blocks become messages', () => {
    const { call } = anthropicMessages.parse({
      model: 'm',
      max_tokens: 9,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      stop_sequences: ['END'],
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: '…', signature: '' },
            { type: 'text', text: 'hm' },
            { type: 'tool_use', id: '1', name: 'f', input: { a: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: '1', content: [{ type: 'text', text: '3' }] },
            { type: 'text', text: 'Go on.' },
          ],
        },
      ],
      tools: [{ name: 'f', description: 'F', input_schema: { type: 'object' } }],
    });
    expect(call).toEqual({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'x' },
        { role: 'assistant', content: 'hm', tool_calls: [{ name: 'f', arguments: '{"a":1}' }] },
        { role: 'tool', content: '3' },
        { role: 'user', content: 'Go on.' },
      ],
      tools: [{ name: 'f', description: 'F', parameters: { type: 'object' } }],
      max_tokens: 9,
      stop: ['END'],
    });
  });

  test('a reply has blocks, usage and a reason', () => {
    expect(jsonOf(anthropicMessages, { messages, max_tokens: 9 }, called)).toMatchObject({
      type: 'message',
      role: 'assistant',
      content: [
        { type: 'text', text: 'hm' },
        { type: 'tool_use', id: 'toolu_7_0', name: 'add', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, output_tokens: 2 },
    });
    expect(jsonOf(anthropicMessages, { messages }, reply({ finish: 'length' }))).toMatchObject({
      stop_reason: 'max_tokens',
    });
  });

  test('a stream has the blocks in pieces', () => {
    expect(eventsOf(anthropicMessages, { messages }, called).map(({ event }) => event)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
  });

  test('images are refused, in Anthropic’s form of errors', () => {
    const image = [{ role: 'user', content: [{ type: 'image', source: {} }] }];
    expect(() => anthropicMessages.parse({ messages: image })).toThrow(
      /^messages\[0\]\.content\[0\]\[0\] has the type/,
    );
    expect(anthropicMessages.error(404, 'none')).toEqual({
      type: 'error',
      error: { type: 'not_found_error', message: 'none' },
    });
  });
});
