// The tokenizer functions that convert a conversation to the ids of a prompt. There are two implementations: the
// tokenizer of a model folder, and, for models behind an API, a class that uses one number per message as its id
// (evaluation/api-generator.ts).
import type { ShownIds } from '../../engine/training-samples';
import type { ChatMessage, ChatTool } from '../../models/tokenizer/chat-template';
import type { ToolFormat, ToolSyntax } from '../../models/tokenizer/tool-syntax';

/** The tokenizer functions that an episode's context calls; they apply the model's chat template. */
export interface PromptTokenizer {
  /** Returns the ids of a conversation with its tools, followed by the assistant's header and the literal `prefix`. */
  encodePrompt(messages: readonly ChatMessage[], prefix: string, tools?: readonly ChatTool[]): number[];
  /**
   * Returns the ids between the sampled ids `answer` and the next response. These ids encode, in this order, the part
   * of the end-of-turn text that was not sampled, the next messages (a text is a user's message), the assistant's
   * header, and `prefix`.
   */
  encodeContinuation(
    answer: readonly number[],
    next: string | readonly ChatMessage[],
    prefix: string,
    tools?: readonly ChatTool[],
  ): number[];
  /** Like `encodePrompt`, with the pictures of the messages' texts (picture-mark.ts); absent if the model reads text only. */
  shownPrompt?(messages: readonly ChatMessage[], prefix: string, tools?: readonly ChatTool[]): ShownIds;
  /** Like `encodeContinuation`, with the pictures of the messages' texts. */
  shownContinuation?(
    answer: readonly number[],
    next: string | readonly ChatMessage[],
    prefix: string,
    tools?: readonly ChatTool[],
  ): ShownIds;
  /** Returns the image tokens of a picture of the given size; undefined if the model reads text only. */
  readonly pictures?: { tokens(size: { width: number; height: number }): number } | undefined;
  /** Returns the ids that the template adds after the sampled ids `answer` at the end of the conversation. */
  encodeEnd(answer: readonly number[]): number[];
  /** The token with which every message begins. */
  readonly turnMarker: number;
  /** Returns the text that sampled ids encode; special tokens are left out, except those whose texts are in `keep`. */
  decode(ids: readonly number[], options?: { keep?: readonly string[] }): string;
  /**
   * Returns the text of a conversation; with `addGenerationPrompt`, followed by the assistant's header. Without this
   * function, past replies are taken to stay as they were sampled.
   */
  render?(messages: readonly ChatMessage[], addGenerationPrompt: boolean, tools?: readonly ChatTool[]): string;
  /** Returns how the model writes tool calls. Without this function, tools are listed in the system message. */
  toolSyntax?(format: ToolFormat): ToolSyntax;
}
