// A tool call of an episode, as it is stored in `episodes/*.jsonl`.
import { z } from 'zod';

export const toolCallSchema = z.object({
  name: z.string().describe('empty if the call could not be read'),
  arguments: z.record(z.string(), z.unknown()),
  result: z.string().describe('the text that the model saw'),
  error: z.boolean().describe('true if the call was not executed, or if the tool reported a failure'),
  ms: z.number().describe('duration in milliseconds; 0 if the call was not executed'),
});
export type ToolCallRecord = z.infer<typeof toolCallSchema>;

/** Returns a call as text, such as `lookup({"item":"drum"})`. */
export const callText = ({ name, arguments: args }: Pick<ToolCallRecord, 'name' | 'arguments'>): string =>
  name === '' ? 'unreadable call' : `${name}(${JSON.stringify(args)})`;

/** Returns a call with its result and duration, on one line. */
export const callLine = (call: ToolCallRecord): string =>
  `${callText(call)} ${call.error ? 'failed' : 'returned'} ${JSON.stringify(call.result)} (${call.ms} ms)`;
