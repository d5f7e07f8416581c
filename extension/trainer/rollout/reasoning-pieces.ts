// The inputs of the collapse metrics (RAGEN's ctx_manager, `first_turn_*` and `all_turns_*`): the context of each turn
// up to the response, and the reasoning in the response. The reasoning is the text between the think tags, trimmed and
// re-tokenised, so that equal texts have equal token ids even if different tokens were sampled for them.
import type { ShownPicture } from '../../engine/training-samples';
import type { RolloutEpisode } from './rollout-batch';
import { reasoningText } from './turn-protocol';

/** A turn's prompt and reasoning as token ids; `turn` counts from 1. */
export interface ReasoningPair {
  prompt: readonly number[];
  reasoning: readonly number[];
  turn: number;
  /** The pictures that the prompt shows; absent if it shows none. */
  shows?: readonly ShownPicture[];
}

export interface ReasoningPieces {
  /**
   * Pair of the first turn; null if the first turn has no reasoning (RAGEN's `first_turn_prompt_ids`,
   * `first_turn_reasoning_ids`).
   */
  first: ReasoningPair | null;
  /** Pairs of all turns with reasoning (RAGEN's `all_turns_*`). */
  turns: ReasoningPair[];
  /** Number of turns with reasoning (RAGEN's `turn_counts`), and number of all turns (`turn_counts_total`). */
  turnCount: number;
  turnTotal: number;
}

/**
 * Returns the pairs of one episode. A turn's prompt consists of all tokens that the model saw before its response,
 * including the assistant's header and the literal `<think>`. A turn has no reasoning if its thought is not closed or
 * is blank.
 * @param encode returns the token ids of a text, without special tokens
 */
export function reasoningPieces(
  episode: Pick<RolloutEpisode, 'turns' | 'samples'>,
  encode: (text: string) => readonly number[],
): ReasoningPieces {
  const turns = episode.samples.flatMap(sample =>
    sample.turns.flatMap(({ turn, span: [from] }): ReasoningPair[] => {
      const reasoning = encode(reasoningText(episode.turns[turn - 1].raw));
      const shows = sample.shows?.filter(({ at }) => at < from);
      const prompt = Array.from(sample.ids.subarray(0, from));
      return reasoning.length > 0 ? [{ prompt, reasoning, turn, ...(shows && { shows }) }] : [];
    }),
  );
  const first = turns.find(({ turn }) => turn === 1) ?? null;
  return { first, turns, turnCount: turns.length, turnTotal: episode.turns.length };
}
