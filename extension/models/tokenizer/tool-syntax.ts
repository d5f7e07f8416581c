// How a model writes tool calls, found in its chat template. The template is rendered with a tool of a known name: if
// the name appears, the template shows tools to the model itself (`native`). Qwen2.5 and Qwen3 write calls as JSON in
// <tool_call> tags (`hermes`, after the model that introduced them); Llama 3.1 to 3.3 write a JSON object, or code after
// <|python_tag|> (`llama3`). For a template without tools, the system message lists them, and calls have the form
// `hermes`.
import { UserError } from '../../common/user-error';
import type { ChatTool } from './chat-template';

export type CallFormat = 'hermes' | 'llama3';

/** `workbench.tools.format`; `plain` lists tools in the system message, even if the template could. */
export const toolFormats = ['auto', 'hermes', 'llama3', 'plain'] as const;
export type ToolFormat = (typeof toolFormats)[number];

export interface ToolSyntax {
  calls: CallFormat;
  /** Whether the chat template renders tools and messages of role `tool`. */
  native: boolean;
}

/** The special token after which Llama 3 writes code or a call. */
export const pythonTag = '<|python_tag|>';
/** The special token with which Llama 3 ends a message that waits for a tool's result. */
export const messageEnd = '<|eom_id|>';

/** The syntax of tokenizers without a chat template of their own. */
export const plainSyntax: ToolSyntax = { calls: 'hermes', native: false };

const probe: ChatTool = {
  type: 'function',
  function: {
    name: 'ragen_probe',
    description: 'probe',
    parameters: { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] },
  },
};

/**
 * Returns the syntax of a model.
 * @param render renders a conversation with tools; throws if the template cannot
 * @param hasToken whether the tokenizer has a special token of this text
 * @throws UserError if the format is `auto` and the template writes calls in an unknown form
 */
export function toolSyntax(
  format: ToolFormat,
  folder: string,
  render: (tools: readonly ChatTool[]) => string,
  hasToken: (text: string) => boolean,
): ToolSyntax {
  if (format === 'plain') return plainSyntax;
  const text = render([probe]);
  const native = text.includes(probe.function.name);
  if (format !== 'auto') return { calls: format, native };
  if (!native) return plainSyntax;
  if (text.includes('<tool_call>') && !text.includes('<function=')) return { calls: 'hermes', native };
  if (hasToken(pythonTag)) return { calls: 'llama3', native };
  throw new UserError(
    `${folder}: the chat template writes tool calls in an unknown form: set workbench.tools.format to plain, or use a model whose template is like that of Qwen2.5, Qwen3 or Llama 3`,
  );
}
