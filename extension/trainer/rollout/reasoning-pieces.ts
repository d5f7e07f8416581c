// The inputs of the collapse metrics (RAGEN's ctx_manager, `first_turn_*` and `all_turns_*`): each turn's context up to
// the response, and the reasoning in the response. The reasoning is the text between the think tags, trimmed and
// re-tokenised, so that equal thoughts give equal token ids however they were sampled.
import type { RolloutEpisode } from './rollout-batch';
import { reasoningText } from './turn-protocol';

/** A turn's prompt and reasoning as token ids; `turn` counts from 1. */
export interface ReasoningPair {
  prompt: readonly number[];
  reasoning: readonly number[];
  turn: number;
}

export interface ReasoningPieces {
  /**
   * The first turn's pair, or null if it has no reasoning (RAGEN's `first_turn_prompt_ids`,
   * `first_turn_reasoning_ids`).
   */
  first: ReasoningPair | null;
  /** All turns with reasoning (RAGEN's `all_turns_*`). */
  turns: ReasoningPair[];
  /** Number of turns with reasoning (RAGEN's `turn_counts`), and of all turns (`turn_counts_total`). */
  turnCount: number;
  turnTotal: number;
}

/**
 * Returns the pairs of one episode. A turn's prompt is everything the model saw before its response, including the
 * assistant's header and the literal `<think>`. A turn whose thought is not closed, or is blank, has no reasoning.
 * @param encode token ids of a text, without special tokens
 */
export function reasoningPieces(
  episode: Pick<RolloutEpisode, 'turns' | 'samples'>,
  encode: (text: string) => readonly number[],
): ReasoningPieces {
  const turns = episode.samples.flatMap(sample =>
    sample.turns.flatMap(({ turn, span: [from] }): ReasoningPair[] => {
      const reasoning = encode(reasoningText(episode.turns[turn - 1].raw));
      return reasoning.length > 0 ? [{ prompt: Array.from(sample.ids.subarray(0, from)), reasoning, turn }] : [];
    }),
  );
  const first = turns[0]?.turn === 1 ? turns[0] : null;
  return { first, turns, turnCount: turns.length, turnTotal: episode.turns.length };
}
