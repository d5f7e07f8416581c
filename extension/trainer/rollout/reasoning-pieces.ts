// What the collapse metrics compare (RAGEN's ctx_manager, `first_turn_*` and `all_turns_*`): each turn's context up to where the answer
// begins, and the reasoning that the model wrote there. The reasoning is the text between the think tags, without tags and outer
// blanks, as the tokenizer writes it: one thought has one sequence of tokens, however it was sampled.
import type { RolloutEpisode } from './rollout-batch';
import { reasoningText } from './turn-protocol';

/** A turn's prompt and reasoning as ids; `turn` counts from 1. */
export interface ReasoningPair {
  prompt: readonly number[];
  reasoning: readonly number[];
  turn: number;
}

export interface ReasoningPieces {
  /** The first turn's pair, where that turn has a reasoning (RAGEN's `first_turn_prompt_ids`, `first_turn_reasoning_ids`). */
  first: ReasoningPair | null;
  /** All turns that have one (RAGEN's `all_turns_*`). */
  turns: ReasoningPair[];
  /** Their number (RAGEN's `turn_counts`), and that of all turns (`turn_counts_total`). */
  turnCount: number;
  turnTotal: number;
}

/**
 * Pieces of one episode. The prompt of a turn is all that the model saw before it answered, the assistant's header and the literal
 * `<think>` included. A turn whose thought never closes, or is blank, has no reasoning.
 * @param encode ids of a text, without special tokens
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
