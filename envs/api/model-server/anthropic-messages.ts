// Anthropic's Messages: requests as model calls, and replies as JSON or as a stream of events. Thoughts that a request
// sends back as blocks are left out, because the policy's own thoughts are part of its text.
import type { CallMessage, CallTool, ModelReply, RequestedTool } from '../model-calls';
import {
  bodyOf,
  isPlain,
  limitOf,
  listOf,
  requireKnown,
  RequestError,
  shown,
  someMessages,
  stopOf,
  textOf,
  toolOf,
  type Plain,
  type Protocol,
  type WireEvent,
  type WireRequest,
} from './wire';

/** Parameters that are used, then those that are ignored. */
const known = new Set([
  'model',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'max_tokens',
  'stop_sequences',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'metadata',
  'service_tier',
  'thinking',
  'cache_control',
]);

export const anthropicMessages: Protocol = {
  route: '/v1/messages',
  parse(given): WireRequest {
    const body = bodyOf(given);
    requireKnown(body, known, {});
    const system = textOf(body.system, 'system', ['text']);
    const begun: CallMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
    const messages = [...begun, ...listOf(body.messages, 'messages').flatMap(messagesOf)];
    const hidden = isPlain(body.tool_choice) && body.tool_choice.type === 'none';
    const tools = hidden ? [] : listOf(body.tools ?? [], 'tools').map(customTool);
    const model = typeof body.model === 'string' ? body.model : 'policy';
    const stop = stopOf(body.stop_sequences, 'stop_sequences');
    return {
      call: { messages: someMessages(messages, 'messages'), tools, ...limitOf(body, 'max_tokens'), stop },
      respond: (reply, id) => {
        const message = messageOf(reply, id, model);
        return body.stream === true ? { events: eventsOf(message) } : { json: message };
      },
    };
  },
  error: (status, message) => ({
    type: 'error',
    error: { type: errorTypes[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'), message },
  }),
};

const errorTypes: Readonly<Record<number, string>> = {
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
};

function customTool(tool: Plain, index: number): CallTool {
  const at = `tools[${index}]`;
  if ((tool.type ?? 'custom') === 'custom') return toolOf(tool.name, tool.description, tool.input_schema, at);
  throw new RequestError(400, `${at} has the type ${shown(tool.type)}: offer tools of your own`, at);
}

/** Returns the messages of one message: results of tools are messages of their own, before the text. */
function messagesOf({ role, content }: Plain, index: number): CallMessage[] {
  const at = `messages[${index}]`;
  if (role !== 'user' && role !== 'assistant')
    throw new RequestError(400, `${at}.role is ${shown(role)}: use one of user, assistant`, at);
  if (typeof content === 'string') return [{ role, content }];
  const results: CallMessage[] = [];
  const calls: RequestedTool[] = [];
  const texts: string[] = [];
  listOf(content, `${at}.content`).forEach((block, position) => {
    const place = `${at}.content[${position}]`;
    const { type, name, input } = block;
    if (type === 'thinking' || type === 'redacted_thinking') return;
    if (type === 'tool_result' && role === 'user')
      results.push({ role: 'tool', content: textOf(block.content, `${place}.content`, ['text']) });
    else if (type === 'tool_use' && role === 'assistant' && typeof name === 'string')
      calls.push({ name, arguments: JSON.stringify(input ?? {}) });
    else texts.push(textOf([block], place, ['text']));
  });
  const isText = texts.length > 0 || calls.length > 0;
  const text: CallMessage = { role, content: texts.join('\n'), ...(calls.length > 0 && { tool_calls: calls }) };
  return [...results, ...(isText ? [text] : [])];
}

function messageOf(
  { content, tool_calls, finish, prompt_tokens, completion_tokens }: ModelReply,
  id: string,
  model: string,
) {
  const blocks: Plain[] = [
    ...(content !== '' || tool_calls.length === 0 ? [{ type: 'text', text: content }] : []),
    ...tool_calls.map((call, index) => ({
      type: 'tool_use',
      id: `toolu_${id}_${index}`,
      name: call.name,
      input: JSON.parse(call.arguments) as unknown,
    })),
  ];
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content: blocks,
    stop_reason: tool_calls.length > 0 ? 'tool_use' : finish === 'length' ? 'max_tokens' : 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: prompt_tokens, output_tokens: completion_tokens },
  };
}

/** Returns the events of a stream: each block begins empty and is filled in one piece. */
function eventsOf(message: ReturnType<typeof messageOf>): WireEvent[] {
  const { content, stop_reason, stop_sequence, usage } = message;
  const begun = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } };
  const bodies: Plain[] = [
    { type: 'message_start', message: begun },
    ...content.flatMap((block, index): Plain[] => {
      const isText = block.type === 'text';
      const delta = isText
        ? { type: 'text_delta', text: block.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
      return [
        {
          type: 'content_block_start',
          index,
          content_block: isText ? { ...block, text: '' } : { ...block, input: {} },
        },
        { type: 'content_block_delta', index, delta },
        { type: 'content_block_stop', index },
      ];
    }),
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage: { output_tokens: usage.output_tokens } },
    { type: 'message_stop' },
  ];
  return bodies.map(body => ({ event: String(body.type), data: JSON.stringify(body) }));
}
