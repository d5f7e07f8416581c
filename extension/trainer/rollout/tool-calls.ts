// Parses the tool calls in a response. Pure text functions that never throw: a call that cannot be read becomes a
// problem, one sentence that the model gets as the call's result. Two forms:
// * hermes (Qwen2.5, Qwen3): <tool_call>{"name": …, "arguments": {…}}</tool_call>, any number of times, between texts.
// * llama3 (Llama 3.1 to 3.3): the response is {"name": …, "parameters": {…}}, several separated by `;`; or, after
//   <|python_tag|>, such objects, `name.call(key="value")` as for the built-in tools, or code for an interpreter.
import type { ToolCall, WrittenCall } from '../../../envs/api/tools/call-action';
import { isRecord, jsonOrNothing } from '../../common/json';
import { pythonTag, type CallFormat, type ToolSyntax } from '../../models/tokenizer/tool-syntax';

/** The calls of a response, in order, and the text around them. */
export interface ParsedCalls {
  calls: WrittenCall[];
  content: string;
}

/** Writes calls as a model of this syntax does; `parseCalls` reads them. */
export function writtenCalls(calls: readonly ToolCall[], { calls: format, native }: ToolSyntax): string {
  const space = native ? '\n' : '';
  if (format === 'hermes')
    return calls.map(call => `${open}${space}${jsonOf(call, 'arguments')}${space}${close}`).join(space);
  return calls.map(call => jsonOf(call, 'parameters')).join('; ');
}

const jsonOf = ({ name, arguments: args }: ToolCall, key: string): string =>
  `{"name": ${JSON.stringify(name)}, "${key}": ${JSON.stringify(args)}}`;

/** Names of tools that receive code that Llama 3 writes without a name; their parameter is `code`. */
const interpreters = ['code_interpreter', 'python', 'ipython'];

/**
 * Parses a response without its thought.
 * @param tools names of the tools of the episode
 */
export function parseCalls(text: string, format: CallFormat, tools: readonly string[] = []): ParsedCalls {
  return format === 'hermes' ? hermesCalls(text) : llamaCalls(text, tools);
}

const [open, close] = ['<tool_call>', '</tool_call>'];

function hermesCalls(text: string): ParsedCalls {
  const [before, ...blocks] = text.split(open);
  const texts = [before];
  const calls = blocks.map((block): WrittenCall => {
    const end = block.indexOf(close);
    if (end >= 0) {
      texts.push(block.slice(end + close.length));
      return callIn(block.slice(0, end), 'arguments');
    }
    const call = callIn(block, 'arguments'); // a model may stop after the object
    return 'problem' in call ? { problem: `the tool call is not closed with ${close}` } : call;
  });
  return { calls, content: texts.join('').trim() };
}

function llamaCalls(text: string, tools: readonly string[]): ParsedCalls {
  const at = text.indexOf(pythonTag);
  if (at < 0) {
    const body = text.trim();
    const isCall = body.startsWith('{') && /"name"\s*:/.test(body);
    return isCall ? { calls: separatedCalls(body), content: '' } : { calls: [], content: body };
  }
  const body = text.slice(at + pythonTag.length).trim();
  const content = text.slice(0, at).trim();
  if (body.startsWith('{')) return { calls: separatedCalls(body), content };
  return { calls: [namedCall(body) ?? codeCall(body, tools)], content };
}

/** Parses JSON objects that are separated by semicolons or white space. */
function separatedCalls(body: string): WrittenCall[] {
  const calls: WrittenCall[] = [];
  for (let from = 0; from < body.length;) {
    const gap = /[\s;]*/y;
    gap.lastIndex = from;
    from += gap.exec(body)![0].length;
    if (from === body.length) break;
    const end = objectEnd(body, from);
    calls.push(callIn(body.slice(from, end), 'parameters'));
    from = end;
  }
  return calls;
}

/** Returns the index after the JSON object that starts at `from`; the end of the text if the object is not closed. */
export function objectEnd(text: string, from: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = from; i < text.length; i++) {
    const letter = text[i];
    if (quoted && letter === '\\') i++;
    else if (letter === '"') quoted = !quoted;
    else if (!quoted && letter === '{') depth++;
    else if (!quoted && letter === '}' && --depth <= 0) return i + 1;
  }
  return text.length;
}

/** Parses one call. `key` is the usual key of the arguments; the other family's key is accepted too. */
function callIn(text: string, key: 'arguments' | 'parameters'): WrittenCall {
  const other = key === 'arguments' ? 'parameters' : 'arguments';
  const form = `{"name": …, "${key}": {…}}`;
  const value = jsonOrNothing(text.trim());
  if (!isRecord(value)) return { problem: `the tool call is not a JSON object of the form ${form}` };
  const { name } = value;
  if (typeof name !== 'string' || name === '') return { problem: `the tool call has no name: write ${form}` };
  const given = value[key] ?? value[other] ?? {};
  const args = typeof given === 'string' ? jsonOrNothing(given) : given; // some models quote the object
  if (!isRecord(args)) return { problem: `the ${key} of the tool call are not a JSON object: write ${form}` };
  return { name, arguments: args };
}

const named = /^(?<name>[A-Za-z_]\w*)\.call\((?<body>.*)\)$/s;
const argument = /\s*(?<key>[A-Za-z_]\w*)\s*=\s*(?<value>"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null)\s*(?:,|$)/y;

/** Parses `name.call(key="value", …)`; undefined if the text has another form. */
function namedCall(text: string): ToolCall | undefined {
  const { name, body } = named.exec(text)?.groups ?? {};
  if (name === undefined) return undefined;
  const args: Record<string, unknown> = {};
  for (let from = 0; from < body.trimEnd().length; from = argument.lastIndex) {
    argument.lastIndex = from;
    const found = argument.exec(body.trimEnd())?.groups;
    if (!found) return undefined;
    Object.defineProperty(args, found.key, { value: jsonOrNothing(found.value), enumerable: true, configurable: true });
  }
  return { name, arguments: args };
}

function codeCall(code: string, tools: readonly string[]): WrittenCall {
  const name = interpreters.find(interpreter => tools.includes(interpreter));
  if (code === '') return { problem: `the tool call after ${pythonTag} is empty` };
  return name === undefined
    ? { problem: 'there is no tool that executes code: call a tool by its name, with a JSON object' }
    : { name, arguments: { code } };
}
