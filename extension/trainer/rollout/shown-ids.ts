// Token ids with the pictures that they show. Models behind an API and text-only models have ids without pictures.
import { appendAll } from '../../common/lists';
import type { ShownIds, ShownPicture } from '../../engine/training-samples';
import type { ChatMessage, ChatTool } from '../../models/tokenizer/chat-template';
import type { PromptTokenizer } from './prompt-tokenizer';

/** Like `encodePrompt`, with the pictures of the messages' texts. */
export const shownPrompt = (
  tokenizer: PromptTokenizer,
  messages: readonly ChatMessage[],
  prefix: string,
  tools?: readonly ChatTool[],
): ShownIds =>
  tokenizer.shownPrompt?.(messages, prefix, tools) ?? {
    ids: tokenizer.encodePrompt(messages, prefix, tools),
    shows: [],
  };

/** Like `encodeContinuation`, with the pictures of the messages' texts. */
export const shownContinuation = (
  tokenizer: PromptTokenizer,
  answer: readonly number[],
  next: string | readonly ChatMessage[],
  prefix: string,
  tools?: readonly ChatTool[],
): ShownIds =>
  tokenizer.shownContinuation?.(answer, next, prefix, tools) ?? {
    ids: tokenizer.encodeContinuation(answer, next, prefix, tools),
    shows: [],
  };

/** Returns the pictures with their tokens moved by `offset`. */
const moved = (shows: readonly ShownPicture[], offset: number): ShownPicture[] =>
  shows.map(({ at, picture }) => ({ at: at + offset, picture }));

/** Appends ids, and their pictures, to others. */
export function appendShown(
  to: ShownIds,
  { ids, shows }: { ids: readonly number[]; shows: readonly ShownPicture[] },
): void {
  appendAll(to.shows, moved(shows, to.ids.length));
  appendAll(to.ids, ids);
}
