// OpenAI's Responses: requests as model calls, and replies as JSON or as a stream of events. The server keeps no
// responses, so a request must contain its complete conversation; `previous_response_id` is refused. The items of a
// request that follow each other become one message where the model sees one: a text and the calls after it.
import type { CallMessage, CallTool, ModelReply } from '../model-calls';
import {
  bodyOf,
  isPlain,
  limitOf,
  listOf,
  requireKnown,
  RequestError,
  shown,
  someMessages,
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
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'max_output_tokens',
  'stream',
  'stream_options',
  'temperature',
  'top_p',
  'store',
  'metadata',
  'user',
  'parallel_tool_calls',
  'reasoning',
  'include',
  'truncation',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'max_tool_calls',
]);

/** Parameters that are refused unless they ask for nothing special. */
const neutral = {
  text: (value: unknown) =>
    isPlain(value) && (value.format === undefined || (isPlain(value.format) && value.format.type === 'text')),
  background: (value: unknown) => value === false,
  top_logprobs: (value: unknown) => value === 0,
};

export const responses: Protocol = {
  route: '/v1/responses',
  parse(given): WireRequest {
    const body = bodyOf(given);
    requireKnown(body, known, neutral);
    const { instructions, input } = body;
    const system = textOf(instructions, 'instructions', []);
    const begun: CallMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
    const messages = [...begun, ...messagesOf(input)];
    const tools = body.tool_choice === 'none' ? [] : listOf(body.tools ?? [], 'tools').map(functionOf);
    const model = typeof body.model === 'string' ? body.model : 'policy';
    return {
      call: { messages: someMessages(messages, 'input'), tools, ...limitOf(body, 'max_output_tokens'), stop: [] },
      respond: (reply, id) => {
        const response = responseOf(reply, id, model);
        return body.stream === true ? { events: eventsOf(response) } : { json: response };
      },
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

function functionOf(tool: Plain, index: number): CallTool {
  const at = `tools[${index}]`;
  if (tool.type === 'function') return toolOf(tool.name, tool.description, tool.parameters, at);
  throw new RequestError(400, `${at} has the type ${shown(tool.type)}: offer tools of the type function`, at);
}

const textTypes = ['input_text', 'output_text', 'text', 'refusal'];
const roles: Readonly<Record<string, CallMessage['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
};

/** Returns the messages of an input: one text, or a list of items. Items of reasoning are left out. */
function messagesOf(input: unknown): CallMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  const messages: CallMessage[] = [];
  listOf(input, 'input').forEach((item, index) => {
    const at = `input[${index}]`;
    const { type = 'message', role, content, name, output } = item;
    const last = messages.at(-1);
    if (type === 'reasoning') return;
    if (type === 'function_call_output') {
      messages.push({ role: 'tool', content: textOf(output, `${at}.output`, textTypes) });
      return;
    }
    if (type === 'function_call') {
      if (typeof name !== 'string' || typeof item.arguments !== 'string')
        throw new RequestError(400, `${at} is ${shown(item)}: give name and arguments`, at);
      const call = { name, arguments: item.arguments };
      if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), call];
      else messages.push({ role: 'assistant', content: '', tool_calls: [call] });
      return;
    }
    const own = typeof role === 'string' && Object.hasOwn(roles, role) ? roles[role] : undefined;
    if (type !== 'message' || !own)
      throw new RequestError(400, `${at} has the type ${shown(type)} and the role ${shown(role)}: send messages`, at);
    messages.push({ role: own, content: textOf(content, `${at}.content`, textTypes) });
  });
  return messages;
}

interface OutputItem {
  type: 'message' | 'function_call';
  id: string;
  status: 'completed';
  [key: string]: unknown;
}

function responseOf(reply: ModelReply, id: string, model: string) {
  const { content, tool_calls, prompt_tokens, completion_tokens } = reply;
  const isText = content !== '' || tool_calls.length === 0;
  const text: OutputItem = {
    type: 'message',
    id: `msg_${id}`,
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: content, annotations: [], logprobs: [] }],
  };
  const calls = tool_calls.map((call, index): OutputItem => ({
    type: 'function_call',
    id: `fc_${id}_${index}`,
    call_id: `call_${id}_${index}`,
    status: 'completed',
    ...call,
  }));
  const isCut = reply.finish === 'length' && tool_calls.length === 0;
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    error: null,
    instructions: null,
    metadata: {},
    model,
    output: [...(isText ? [text] : []), ...calls],
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    usage: {
      input_tokens: prompt_tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: completion_tokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt_tokens + completion_tokens,
    },
  };
}

/** Returns the events of a stream: each item is added, filled in one piece and done. */
function eventsOf(response: ReturnType<typeof responseOf>): WireEvent[] {
  const begun = { ...response, status: 'in_progress', incomplete_details: null, output: [], usage: null };
  const bodies: Plain[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...response.output.flatMap((item, output_index) => itemEvents(item, output_index)),
    { type: response.status === 'completed' ? 'response.completed' : 'response.incomplete', response },
  ];
  return bodies.map((body, sequence_number) => ({
    event: String(body.type),
    data: JSON.stringify({ ...body, sequence_number }),
  }));
}

function itemEvents(item: OutputItem, output_index: number): Plain[] {
  const at = { output_index, item_id: item.id };
  const begun = { ...item, status: 'in_progress', ...(item.type === 'message' ? { content: [] } : { arguments: '' }) };
  const added = { type: 'response.output_item.added', output_index, item: begun };
  const done = { type: 'response.output_item.done', output_index, item };
  if (item.type === 'function_call')
    return [
      added,
      { type: 'response.function_call_arguments.delta', ...at, delta: item.arguments },
      { type: 'response.function_call_arguments.done', ...at, name: item.name, arguments: item.arguments },
      done,
    ];
  const [part] = Array.isArray(item.content) ? (item.content as Plain[]) : [];
  const within = { ...at, content_index: 0 };
  return [
    added,
    { type: 'response.content_part.added', ...within, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...within, delta: part.text, logprobs: [] },
    { type: 'response.output_text.done', ...within, text: part.text, logprobs: [] },
    { type: 'response.content_part.done', ...within, part },
    done,
  ];
}
