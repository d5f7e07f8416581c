// The text protocol of a turn with tools: what the system message says about tools, the messages after a response, and
// the parsing of a response into tool calls or an answer. Pure text functions, as in turn-protocol.ts. A response that
// contains a call is one action (envs/api/tools/call-action.ts). A response without calls is an answer if it has an
// answer tag; otherwise it has no action, and the next message says so.
import { answerAction, callAction, isReadable } from '../../../envs/api/tools/call-action';
import { isRecord } from '../../common/json';
import { between, withAnswerTag } from '../../common/tagged-text';
import type { ChatMessage, ChatTool } from '../../models/tokenizer/chat-template';
import type { ToolSyntax } from '../../models/tokenizer/tool-syntax';
import type { ToolDescription } from '../../protocol/tool-link';
import { parseCalls } from './tool-calls';
import { generationPrefix, type ParsedResponse, type TurnPrompt, type TurnProtocol } from './turn-protocol';

/** The tools of an episode, and how its model writes calls. */
export interface EpisodeTools {
  tools: readonly ToolDescription[];
  syntax: ToolSyntax;
}

/** Returns the prefix of every response; empty unless the model is made to think. */
export const toolPrefix = ({ enable_think }: Pick<TurnProtocol, 'enable_think'>): string =>
  enable_think ? '<think>' : '';

/** Returns the prefix of every response in an environment; empty if a program makes the calls. */
export const responsePrefix = (
  protocol: Pick<TurnProtocol, 'enable_think' | 'answer_tag'>,
  { tools, model_calls }: { tools?: readonly unknown[]; model_calls?: boolean },
): string => (model_calls ? '' : tools ? toolPrefix(protocol) : generationPrefix(protocol));

/** Returns the tools in the form that chat templates expect. */
export const chatTools = (tools: readonly ToolDescription[]): ChatTool[] =>
  tools.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }));

/** Returns the end of the system message: the form of responses and, unless the template lists the tools, the tools. */
export function toolDemand({ tools, syntax }: EpisodeTools, protocol: TurnProtocol): string {
  const { enable_think, answer_tag: tag = 'answer' } = protocol;
  const begin = enable_think ? 'Begin with <think> [your thoughts] </think>. Then call' : 'Call';
  const demand = `${begin} tools, or write the answer as <${tag}> [your answer] </${tag}>.`;
  return syntax.native ? demand : `${demand}\n${toolList(tools)}`;
}

/** Returns the tools and the form of calls as text, for templates that do not list tools. */
export function toolList(tools: readonly ToolDescription[]): string {
  const list = tools.map(
    ({ name, description, parameters }) => `{"name": "${name}", "arguments": ${typeText(parameters)}}: ${description}`,
  );
  return `Call a tool by <tool_call>{"name": …, "arguments": {…}}</tool_call>, several times if needed. Tools:\n${list.join('\n')}`;
}

/** Returns a JSON schema as the text of a type, which takes fewer tokens: `{"path": string, "depth"?: number}`. */
export function typeText(schema: unknown): string {
  if (!isRecord(schema)) return 'any';
  const { type, properties, required, items, enum: values, anyOf, const: only } = schema;
  if (only !== undefined) return JSON.stringify(only);
  if (Array.isArray(values)) return values.map(value => JSON.stringify(value)).join(' | ');
  if (Array.isArray(anyOf)) return anyOf.map(typeText).join(' | ');
  if (type === 'array') return `[${typeText(items)}, …]`;
  if (type === 'object' && isRecord(properties)) {
    const needed = Array.isArray(required) ? (required as unknown[]) : [];
    const members = Object.entries(properties).map(
      ([key, member]) => `${JSON.stringify(key)}${needed.includes(key) ? '' : '?'}: ${typeText(member)}`,
    );
    return `{${members.join(', ')}}`;
  }
  return typeof type === 'string' ? type : 'any';
}

const warning =
  'The last response held neither a tool call nor an answer. Please call a tool, or write the answer in its tags.';

/** Returns the messages between a response and the next one, or before the first response. */
export function turnMessages(prompt: TurnPrompt, { syntax }: EpisodeTools, protocol: TurnProtocol): ChatMessage[] {
  const { results, warn, state } = prompt;
  if (warn) return [{ role: 'user', content: withAnswerTag(warning, protocol.answer_tag) }];
  if (!results) return [{ role: 'user', content: withAnswerTag(state, protocol.answer_tag) }];
  if (syntax.native) return results.map(content => ({ role: 'tool', content }));
  const blocks = results.map(result => `<tool_response>\n${result}\n</tool_response>`);
  return [{ role: 'user', content: blocks.join('\n') }];
}

/** Parses a response that includes the prefix. */
export function parseToolResponse(
  raw: string,
  protocol: Pick<TurnProtocol, 'enable_think' | 'answer_tag'>,
  { tools, syntax }: EpisodeTools,
): ParsedResponse {
  const { enable_think, answer_tag: tag = 'answer' } = protocol;
  const none = { thought: null, answer: null, actions: [], llm_response: raw };
  const thinking = raw.trimStart().startsWith('<think>') ? between(raw, '<think>', '</think>') : null;
  if (!thinking && (enable_think || raw.trimStart().startsWith('<think>'))) return none;
  const thought = thinking ? thinking.inner.trim() : null;
  const body = thinking ? raw.slice(thinking.end) : raw;
  const names = tools.map(({ name }) => name);
  const { calls } = parseCalls(body, syntax.calls, names);
  if (calls.length > 0) {
    const answer = calls.map(call => (isReadable(call) ? `${call.name}(${JSON.stringify(call.arguments)})` : '?'));
    const malformed = calls.some(call => !isReadable(call));
    return { thought, answer: answer.join('; '), actions: [callAction(calls)], malformed, llm_response: raw };
  }
  const answer = between(body, `<${tag}>`, `</${tag}>`)?.inner.trim();
  if (answer === undefined || answer === '') return { ...none, thought };
  return { thought, answer, actions: [answerAction(answer)], llm_response: raw };
}
