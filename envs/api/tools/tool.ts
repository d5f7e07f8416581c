// Tools of an environment: typed functions that the model may call before it answers. An environment declares its tools
// in the object that `create` returns, so their functions share the variables of the episode. Parameters are a zod
// schema: the model sees its JSON schema, and a call whose arguments do not match is not executed.
// Invariant: an episode stays a pure function of (config, seed, member, actions). Calls are actions (call-action.ts).
import type { z } from 'zod';

export interface ToolContext {
  /** Aborts when the call exceeds its time limit or the turn of the call has ended. */
  readonly signal: AbortSignal;
}

/** A tool's parameters: the schema of an object. */
export type ToolParameters = z.core.$ZodObject;

export interface Tool<Parameters extends ToolParameters = ToolParameters> {
  /** What the tool does, for the model. */
  description: string;
  parameters: Parameters;
  /**
   * If true, the call may run at the same time as neighbouring calls of the turn that are also parallel. Set it only if
   * the order of such calls cannot matter, because the tool changes nothing. False by default: the call starts when all
   * earlier calls of its turn have ended.
   */
  parallel?: boolean;
  /**
   * Executes a call with arguments that match `parameters`. Returns a text, or plain data, which is written as JSON, or a
   * promise of either. A ToolError is shown to the model as the call's result; any other error ends the episode, as it
   * does in `step`.
   */
  run(args: z.infer<Parameters>, context: ToolContext): unknown;
}

/** Tools by name. A name consists of letters, digits, `_` and `-`. */
export type Tools = Readonly<Record<string, Tool>>;

/** A failure that the model may correct, such as an unknown file. The model sees the message as the call's result. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** Declares a tool; the arguments of `run` have the types of the schema `parameters`. */
export function defineTool<Parameters extends ToolParameters>(tool: Tool<Parameters>): Tool {
  return tool;
}
