// Tool calls as an action. The calls of one response are one action of the environment: a JSON text with the key
// `tool_calls`. Calls are therefore stored, replayed and sent like all other actions. A call that the model wrote
// incorrectly stays in the action with a sentence that says what is wrong, because this sentence is the call's result.

/** A call with a name and arguments that need not match the tool's parameters. */
export interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
}

/** A call that cannot be read. `problem` is one sentence for the model. */
export interface UnreadableCall {
  problem: string;
}

export type WrittenCall = ToolCall | UnreadableCall;

export const isReadable = (call: WrittenCall): call is ToolCall => 'name' in call;

const head = '{"tool_calls":';

/** Returns the action that consists of these calls. */
export const callAction = (calls: readonly WrittenCall[]): string => `${head}${JSON.stringify(calls)}}`;

/** Returns the action for an answer. An answer with the form of calls gets a space in front, so that it stays an answer. */
export const answerAction = (answer: string): string => (answer.startsWith(head) ? ` ${answer}` : answer);

/** Returns the calls of an action; undefined if the action is an answer. */
export function callsOf(action: number | string): WrittenCall[] | undefined {
  if (typeof action !== 'string' || !action.startsWith(head)) return undefined;
  let calls: unknown;
  try {
    ({ tool_calls: calls } = JSON.parse(action) as { tool_calls?: unknown });
  } catch {
    return undefined;
  }
  return Array.isArray(calls) && calls.length > 0 && calls.every(isCall) ? calls : undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isCall = (call: unknown): call is WrittenCall =>
  isObject(call) && (typeof call.problem === 'string' || (typeof call.name === 'string' && isObject(call.arguments)));
