// Reads tool calls that a user writes by hand, in the form in which a turn's answer shows them:
// `lookup({"item": "drum"}); close({})`. The text is an answer unless it begins with the name of a tool and a parenthesis.
import type { ToolCall } from '../../../envs/api/tools/call-action';
import { isRecord, jsonOrNothing } from '../../common/json';
import { UserError } from '../../common/user-error';
import { objectEnd } from '../rollout/tool-calls';

/**
 * Returns the calls of a hand-written answer; undefined if it is an answer without calls.
 * @param tools names of the environment's tools
 * @throws UserError if a call cannot be read
 */
export function givenCalls(answer: string, tools: readonly string[]): ToolCall[] | undefined {
  const nameAt = (from: number): string | undefined =>
    tools.find(name => answer.startsWith(name, from) && /^\s*\(/.test(answer.slice(from + name.length)));
  const calls: ToolCall[] = [];
  let at = answer.length - answer.trimStart().length;
  if (nameAt(at) === undefined) return undefined;
  while (at < answer.length) {
    const name = nameAt(at);
    if (name === undefined)
      throw new UserError(
        `what-if: ${JSON.stringify(answer.slice(at, at + 40))} is no call of a tool: write calls such as ${example(tools[0])}, separated by semicolons`,
      );
    const from = answer.indexOf('(', at) + 1;
    const end = objectEnd(answer, from);
    const given: unknown = jsonOrNothing(answer.slice(from, end));
    const after = /^\s*\)[\s;]*/.exec(answer.slice(end));
    if (!isRecord(given) || !after)
      throw new UserError(
        `what-if: the arguments of ${name} are no JSON object in parentheses: write the call as ${example(name)}`,
      );
    calls.push({ name, arguments: given });
    at = end + after[0].length;
  }
  return calls;
}

const example = (name: string): string => `${name}({"key": "value"})`;
