// A program's call as the chat that the model's template renders, and the model's response as the reply that the program
// receives. Pure text functions. If the template has no tools, the system message lists them, and results are messages
// of the user, as in environments with tools (tool-protocol.ts).
import {
  replyAction,
  type CallMessage,
  type CallTool,
  type ModelCall,
  type ModelReply,
  type RequestedTool,
} from '../../../envs/api/model-calls';
import { isReadable, type ToolCall } from '../../../envs/api/tools/call-action';
import { isRecord, jsonOrNothing } from '../../common/json';
import { minimum } from '../../common/lists';
import { between } from '../../common/tagged-text';
import type { GeneratedRow } from '../../engine/generation-calls';
import type { ChatMessage, ChatTool } from '../../models/tokenizer/chat-template';
import type { ToolSyntax } from '../../models/tokenizer/tool-syntax';
import { parseCalls, writtenCalls } from './tool-calls';
import { chatTools, toolList } from './tool-protocol';
import type { ParsedResponse } from './turn-protocol';

/** A conversation in the form that chat templates expect. */
export interface CallChat {
  messages: ChatMessage[];
  /** The tools for the template; undefined if there are none or the template does not render tools. */
  tools: ChatTool[] | undefined;
}

/** Returns the chat of a call. */
export function chatOf(messages: readonly CallMessage[], tools: readonly CallTool[], syntax: ToolSyntax): CallChat {
  if (syntax.native) return { messages: chatMessagesOf(messages, syntax), tools: chatToolsOf(tools) };
  if (tools.length === 0) return { messages: chatMessagesOf(messages, syntax), tools: undefined };
  const demand = toolList(tools);
  const [first] = messages;
  const begun: CallMessage[] =
    first.role === 'system'
      ? [{ ...first, content: `${first.content}\n${demand}` }, ...messages.slice(1)]
      : [{ role: 'system', content: demand }, ...messages];
  return { messages: chatMessagesOf(begun, syntax), tools: undefined };
}

const chatToolsOf = (tools: readonly CallTool[]): ChatTool[] | undefined =>
  tools.length > 0 ? chatTools(tools) : undefined;

/** Returns messages in the form that chat templates expect. */
export function chatMessagesOf(messages: readonly CallMessage[], syntax: ToolSyntax): ChatMessage[] {
  const chat: ChatMessage[] = [];
  messages.forEach(({ role, content, tool_calls = [] }, index) => {
    if (role === 'tool' && !syntax.native) {
      const block = `<tool_response>\n${content}\n</tool_response>`;
      if (messages[index - 1]?.role === 'tool') chat[chat.length - 1].content += `\n${block}`;
      else chat.push({ role: 'user', content: block });
    } else if (tool_calls.length === 0) chat.push({ role, content });
    else if (!syntax.native) chat.push({ role, content: content + writtenCalls(tool_calls.map(callWith), syntax) });
    else
      chat.push({
        role,
        content,
        tool_calls: tool_calls.map(call => ({ type: 'function', function: callWith(call) })),
      });
  });
  return chat;
}

/** Returns a tool call with its arguments as an object; arguments that are no object become empty. */
function callWith({ name, arguments: text }: RequestedTool): ToolCall {
  const args = jsonOrNothing(text);
  return { name, arguments: isRecord(args) ? args : {} };
}

/** Returns messages as text for display, each after its role. */
export const shownMessages = (messages: readonly CallMessage[]): string =>
  messages
    .map(({ role, content, tool_calls = [] }) =>
      [`${role}: ${content}`, ...tool_calls.map(call => `${call.name}(${call.arguments})`)].join('\n'),
    )
    .join('\n');

/** The reply to a call, and the response that the episode records. */
export interface ReadReply {
  reply: ModelReply;
  response: ParsedResponse;
}

/**
 * Reads a response. Thoughts stay in the reply's content, because programs send the content back and the chat template
 * decides what it keeps. A response with a call that cannot be read stays a text.
 * @param counts tokens of the prompt and of the response
 */
export function readReply(
  raw: string,
  finish: GeneratedRow['finish'],
  { tools, stop }: Pick<ModelCall, 'tools' | 'stop'>,
  syntax: ToolSyntax,
  counts: Pick<ModelReply, 'prompt_tokens' | 'completion_tokens'>,
): ReadReply {
  const text = raw.slice(
    0,
    minimum(
      stop.map(end => raw.indexOf(end)).filter(at => at >= 0),
      raw.length,
    ),
  );
  const isThinking = text.trimStart().startsWith('<think>');
  const thinking = isThinking ? between(text, '<think>', '</think>') : null;
  const thought = thinking?.inner.trim() ?? null;
  const end = thinking?.end ?? 0;
  const names = tools.map(({ name }) => name);
  const parsed =
    tools.length > 0 && (!isThinking || thinking)
      ? parseCalls(text.slice(end), syntax.calls, names)
      : { calls: [], content: text.slice(end) };
  const readable = parsed.calls.filter(isReadable);
  const malformed = readable.length < parsed.calls.length;
  const called = malformed ? [] : readable;
  const tool_calls = called.map(({ name, arguments: args }) => ({ name, arguments: JSON.stringify(args) }));
  const content = called.length > 0 ? text.slice(0, end) + parsed.content : text;
  const reply: ModelReply = { content, tool_calls, finish, ...counts };
  const written = [parsed.content.trim(), ...tool_calls.map(call => `${call.name}(${call.arguments})`)];
  const answer = malformed ? text.slice(end).trim() : written.filter(part => part !== '').join('; ');
  const actions = [replyAction(reply)];
  return { reply, response: { thought, answer, actions, ...(malformed && { malformed }), llm_response: raw } };
}
