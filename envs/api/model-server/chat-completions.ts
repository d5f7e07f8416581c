// OpenAI's chat completions: requests as model calls, and replies as JSON or as a stream of chunks. A stream has the
// complete reply in a few chunks, because a reply is sent when it is complete. Sampling parameters of the request are
// ignored: the policy is sampled as its training requires.
import type { CallMessage, ModelCall, ModelReply, RequestedTool } from '../model-calls';
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
  'tools',
  'tool_choice',
  'max_tokens',
  'max_completion_tokens',
  'stop',
  'stream',
  'stream_options',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'user',
  'metadata',
  'store',
  'parallel_tool_calls',
  'reasoning_effort',
  'verbosity',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
]);

/** Parameters that are refused unless they ask for nothing special. */
const neutral = {
  n: (value: unknown) => value === 1,
  response_format: (value: unknown) => isPlain(value) && value.type === 'text',
  logprobs: (value: unknown) => value === false,
  top_logprobs: (value: unknown) => value === 0,
  logit_bias: (value: unknown) => isPlain(value) && Object.keys(value).length === 0,
  modalities: (value: unknown) => Array.isArray(value) && value.every(item => item === 'text'),
};

export const chatCompletions: Protocol = {
  route: '/v1/chat/completions',
  parse(given): WireRequest {
    const body = bodyOf(given);
    requireKnown(body, known, neutral);
    const messages = listOf(body.messages, 'messages').map(messageOf);
    const tools = body.tool_choice === 'none' ? [] : listOf(body.tools ?? [], 'tools').map(functionOf);
    const call: ModelCall = {
      messages: someMessages(messages, 'messages'),
      tools,
      ...limitOf(body, 'max_completion_tokens', 'max_tokens'),
      stop: stopOf(body.stop, 'stop'),
    };
    const model = typeof body.model === 'string' ? body.model : 'policy';
    const counted = isPlain(body.stream_options) && body.stream_options.include_usage === true;
    return {
      call,
      respond: (reply, id) =>
        body.stream === true ? { events: chunks(reply, id, model, counted) } : { json: completion(reply, id, model) },
    };
  },
  error: (status, message, parameter = undefined) => ({
    error: {
      message,
      type: status >= 500 ? 'server_error' : 'invalid_request_error',
      param: parameter ?? null,
      code: null,
    },
  }),
};

function functionOf(tool: Plain, index: number) {
  const at = `tools[${index}]`;
  if (tool.type !== 'function' || !isPlain(tool.function))
    throw new RequestError(400, `${at} has the type ${shown(tool.type)}: offer tools of the type function`, at);
  const { name, description, parameters } = tool.function;
  return toolOf(name, description, parameters, `${at}.function`);
}

const roles: Readonly<Record<string, CallMessage['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
};

function messageOf({ role, content, tool_calls }: Plain, index: number): CallMessage {
  const at = `messages[${index}]`;
  const own = typeof role === 'string' && Object.hasOwn(roles, role) ? roles[role] : undefined;
  if (!own)
    throw new RequestError(400, `${at}.role is ${shown(role)}: use one of ${Object.keys(roles).join(', ')}`, at);
  const text = textOf(content, `${at}.content`, ['text', 'refusal']);
  const calls = own === 'assistant' ? listOf(tool_calls ?? [], `${at}.tool_calls`).map(callOf) : [];
  return { role: own, content: text, ...(calls.length > 0 && { tool_calls: calls }) };

  function callOf(call: Plain, position: number): RequestedTool {
    const { name, arguments: args = '{}' } = isPlain(call.function) ? call.function : {};
    if (typeof name === 'string' && typeof args === 'string') return { name, arguments: args };
    const place = `${at}.tool_calls[${position}]`;
    throw new RequestError(400, `${place} is ${shown(call)}: give function.name and function.arguments`, place);
  }
}

/** Why the reply ended, in OpenAI's names. */
const finishOf = ({ finish, tool_calls }: ModelReply): string =>
  tool_calls.length > 0 ? 'tool_calls' : finish === 'length' ? 'length' : 'stop';

const usageOf = ({ prompt_tokens, completion_tokens }: ModelReply) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
});

const callsOf = ({ tool_calls }: ModelReply, id: string) =>
  tool_calls.map((call, index) => ({ id: `call_${id}_${index}`, type: 'function', function: call }));

const created = (): number => Math.floor(Date.now() / 1000);

function completion(reply: ModelReply, id: string, model: string) {
  const called = reply.tool_calls.length > 0;
  const content = called && reply.content === '' ? null : reply.content;
  const message = { role: 'assistant', content, refusal: null, ...(called && { tool_calls: callsOf(reply, id) }) };
  return {
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created: created(),
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(reply) }],
    usage: usageOf(reply),
  };
}

/** @param counted whether a last chunk contains the usage */
function chunks(reply: ModelReply, id: string, model: string, counted: boolean): WireEvent[] {
  const head = { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: created(), model };
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(counted && { usage: null }),
  });
  const calls = callsOf(reply, id).map((call, index) => ({ index, ...call }));
  const all = [
    chunk({ role: 'assistant', content: '' }),
    ...(reply.content === '' ? [] : [chunk({ content: reply.content })]),
    ...(calls.length > 0 ? [chunk({ tool_calls: calls })] : []),
    chunk({}, finishOf(reply)),
    ...(counted ? [{ ...head, choices: [], usage: usageOf(reply) }] : []),
  ];
  return [...all.map(each => ({ data: JSON.stringify(each) })), { data: '[DONE]' }];
}
