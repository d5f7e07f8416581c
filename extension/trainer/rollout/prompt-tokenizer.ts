// The tokenizer functions that turn a conversation into the ids a model reads. Implemented by the tokenizer of a model
// folder and by the plain text that a service receives.
import type { ChatMessage } from '../../models/tokenizer/chat-template';

/** The tokenizer functions that the context needs, with a chat template. */
export interface PromptTokenizer {
  /** Ids of a conversation, the assistant's header and the literal `prefix`. */
  encodePrompt(messages: readonly ChatMessage[], prefix: string): number[];
  /**
   * Ids between the sampled ids `answer` and the next answer: the part of the turn's end that was not sampled, the
   * user's message, the assistant's header, `prefix`.
   */
  encodeContinuation(answer: readonly number[], userText: string, prefix: string): number[];
  /** Ids that the template writes after the sampled ids `answer` at the end of the conversation. */
  encodeEnd(answer: readonly number[]): number[];
  /** The token that every message begins with. */
  readonly turnMarker: number;
  /** Text of sampled ids without special tokens. */
  decode(ids: readonly number[]): string;
}
