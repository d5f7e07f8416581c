// The tools that an environment declares, checked and described. The values come from environment code, so each part is
// checked. A tool's parameters are described as a JSON schema, which zod derives from the schema.
import { z } from 'zod';
import type { Tool, ToolContext } from '../../../../envs/api/tools/tool';
import { longestText } from '../../../protocol/environment-message-bounds';
import { mostTools, type ToolDescription } from '../../../protocol/tool-link';
import { badValue } from '../threads/fault';
import { plainValue, shown } from '../worker/returned-values';

/** A tool that calls can be sent to, whether an environment or a server provides it. */
export interface CallableTool {
  description: ToolDescription;
  /** Whether the call may run at the same time as neighbouring parallel calls. */
  parallel: boolean;
  /** Returns the arguments for `run`, or what is wrong with them as the rest of a sentence. */
  check(args: Record<string, unknown>): { args: Record<string, unknown> } | { problem: string };
  run(args: Record<string, unknown>, context: ToolContext): unknown;
  /**
   * Returns the error that ends the episode when a call exceeds the time limit; without this function, the model sees
   * the time limit as the call's result.
   */
  late?(ms: number): Error;
}

const toolName = /^[\w-]{1,64}$/;

/**
 * Returns the tools that an environment declares, by name.
 * @throws FaultError if a tool is not valid
 */
export function declaredTools(tools: unknown): Map<string, CallableTool> {
  if (tools === undefined) return new Map();
  const remedy = 'set tools to { name: defineTool({ description, parameters, run }) }';
  if (tools === null || typeof tools !== 'object') throw badValue(`has the tools ${shown(tools)}`, remedy);
  const entries = Object.entries(tools as Record<string, unknown>);
  if (entries.length > mostTools) throw badValue(`has ${entries.length} tools`, `declare at most ${mostTools} tools`);
  return new Map(entries.map(([name, tool]) => [name, callable(name, tool)]));
}

function withoutBounds({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}

function callable(name: string, tool: unknown): CallableTool {
  if (!toolName.test(name))
    throw badValue(`has a tool named ${shown(name)}`, 'use a name of letters, digits, _ and -, at most 64 characters');
  const { description, parameters, parallel = false, run } = (tool ?? {}) as Partial<Tool>;
  if (typeof description !== 'string' || description.length > longestText)
    throw badValue(`has the tool ${name} with the description ${shown(description)}`, 'describe the tool in a text');
  if (typeof run !== 'function') throw badValue(`has the tool ${name} without run`, 'add run(args) to the tool');
  const schema = parameters as z.ZodType | undefined;
  if (typeof schema?.safeParse !== 'function' || schema.def.type !== 'object')
    throw badValue(
      `has the tool ${name} whose parameters are ${shown(schema)}, which is not a zod object schema`,
      'set them to z.strictObject({ … })',
    );
  return {
    description: { name, description, parameters: jsonSchema(name, schema) },
    parallel,
    check(args) {
      const parsed = schema.safeParse(args);
      if (parsed.success) return { args: parsed.data as Record<string, unknown> };
      const [{ path, message }] = parsed.error.issues;
      return {
        problem: path.length > 0 ? `the argument ${path.map(String).join('.')} is wrong (${message})` : message,
      };
    },
    run: (args, context) => run.call(tool as Tool, args, context),
  };
}

/**
 * Returns the JSON schema of a tool's parameters, without the key that names the schema's dialect and without the bounds
 * that zod gives every integer: the model reads the schema, and each key costs tokens.
 */
function jsonSchema(name: string, schema: z.ZodType): Record<string, unknown> {
  try {
    const parameters = plainValue(z.toJSONSchema(schema, { io: 'input', override: withoutBounds }));
    const { $schema: _dialect, ...rest } = parameters as Record<string, unknown>;
    return rest;
  } catch (error) {
    throw badValue(
      `has the tool ${name} whose parameters have no JSON schema (${shown((error as Error).message)})`,
      'use texts, numbers, booleans, enums, arrays and objects as parameters',
    );
  }
}
