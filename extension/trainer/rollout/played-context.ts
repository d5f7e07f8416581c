// What the rollout, the live view and the episode record read from the context of an episode, whichever side builds its
// prompts: the trainer from the environment's states (context-manager.ts), or the episode's program with its own
// conversations (call-context.ts).
import type { GeneratedRow } from '../../engine/generation-calls';
import type { ShownPicture } from '../../engine/training-samples';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import type { RolloutSample } from './rollout-sample';

/** The prompt ids for the engine: ids to append to the row or, if `fresh`, the complete content of a new row. */
export interface PromptIds {
  append: number[];
  fresh: boolean;
  /** The pictures that the ids to append show; absent if they show none. */
  shows?: readonly ShownPicture[];
}

export interface PlayedContext {
  /** The conversation for display. */
  readonly messages: readonly ChatMessage[];
  /** True if a prompt omitted turns that are inside the window, because they did not fit into the model's context. */
  readonly shortened: boolean;
  /** Number of tokens of the last prompt that did not fit; undefined if every prompt fitted. */
  readonly refused: number | undefined;
  /** Records a sampled response. Returns its text with the generation prefix in front. */
  accept(generated: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'>): string;
  /** Returns the training samples of the episode. */
  samples(): RolloutSample[];
}

/**
 * Returns the ids for the engine if the row holds `held` and the next prompt is `ids`. If the held ids, and the pictures
 * that they show, are a prefix of the prompt, only the remaining ids are appended.
 */
export function promptIds(
  held: readonly number[],
  ids: readonly number[],
  heldShows: readonly ShownPicture[] = [],
  shows: readonly ShownPicture[] = [],
): PromptIds {
  const isSame = (shown: ShownPicture, i: number): boolean =>
    shown.at === heldShows[i]?.at && shown.picture === heldShows[i].picture;
  const before = shows.filter(({ at }) => at < held.length);
  const extended =
    held.length <= ids.length &&
    held.every((id, index) => id === ids[index]) &&
    before.length === heldShows.length &&
    before.every(isSame);
  if (shows.length > 0) {
    const from = extended ? held.length : 0;
    const rest = shows.filter(({ at }) => at >= from).map(({ at, picture }) => ({ at: at - from, picture }));
    return { append: ids.slice(from), fresh: from === 0, ...(rest.length > 0 && { shows: rest }) };
  }
  return extended ? { append: ids.slice(held.length), fresh: held.length === 0 } : { append: [...ids], fresh: true };
}
