// Converts a hand-written response, or the hand-written beginning of a response, to token ids. The ids of the prefix,
// with which every response begins, are not included. The part that equals the recorded response keeps its sampled ids;
// only the text after this part is tokenised. In an environment with tools, an answer may be calls (given-calls.ts).
import type { GivenAnswer } from '../../protocol/inspection';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { AnswerTag } from '../../common/tagged-text';
import { givenCalls } from './given-calls';
import { writtenCalls } from '../rollout/tool-calls';
import type { EpisodeTools } from '../rollout/tool-protocol';
import { tokenPieces } from '../../models/tokenizer/token-pieces';

/** A recorded response: its text including the prefix, and its sampled tokens. */
export interface RecordedAnswer {
  raw: string;
  ids: readonly number[];
}

export interface GivenTokens {
  ids: number[];
  /** Number of leading `ids` that are taken from the recorded response. */
  kept: number;
  /** True if the response is complete; false if the policy continues it. */
  complete: boolean;
}

type Encoder = Pick<ChatTokenizer, 'encode' | 'decode' | 'stopTokenIds'>;

/**
 * Returns the token ids, without `prefix`, of a hand-written response or of the hand-written beginning of a response.
 * @param prefix the prefix of every response: `<think>` or, without thoughts, the answer's tag; empty with tools
 * @param recorded recorded response of the changed turn; null for a turn without a recording
 * @param tag the tag of the answer (`workbench.answer_tag`)
 * @param tools the environment's tools, and how the model writes calls; undefined if it has none
 * @throws UserError if the answer has a call that cannot be read
 */
export function givenTokens(
  tokenizer: Encoder,
  prefix: string,
  { thought, answer }: GivenAnswer,
  recorded: RecordedAnswer | null,
  tag: AnswerTag = 'answer',
  tools?: EpisodeTools,
): GivenTokens {
  const thinks = prefix === '<think>';
  if (answer === undefined) {
    const begun = thinks && thought !== undefined ? `${thought}</think>` : '';
    return { ids: tokenizer.encode(begun), kept: 0, complete: false };
  }
  const calls =
    tools &&
    givenCalls(
      answer,
      tools.tools.map(({ name }) => name),
    );
  const [open, end] = calls ? ['', writtenCalls(calls, tools.syntax)] : [`<${tag}>`, `${answer}</${tag}>`];
  const stop = tokenizer.stopTokenIds.slice(0, 1);
  if (thinks && thought !== undefined)
    return { ids: [...tokenizer.encode(`${thought}</think>${open}${end}`), ...stop], kept: 0, complete: true };
  const answerStart = thinks ? new RegExp(`^<think>.*?</think>\\s*${open}`, 's') : new RegExp(`^${open}`);
  const before = recorded && answerStart.exec(recorded.raw)?.[0];
  if (!recorded || !before) {
    const begun = prefix === open ? '' : open;
    const text = `${thinks ? '</think>' : ''}${begun}${end}`;
    return { ids: [...tokenizer.encode(text), ...stop], kept: 0, complete: true };
  }
  const { count, rest } = keptTokens(tokenizer, recorded.ids, before.slice(prefix.length));
  const ids = [...recorded.ids.slice(0, count), ...tokenizer.encode(rest + end), ...stop];
  return { ids, kept: count, complete: true };
}

/**
 * Finds the longest prefix of `ids` whose decoded text is a prefix of `text`. Returns the number of ids in this prefix,
 * and the rest of `text`.
 */
function keptTokens(tokenizer: Encoder, ids: readonly number[], text: string): { count: number; rest: string } {
  let [count, length, at] = [0, 0, 0];
  for (const [i, piece] of tokenPieces(tokenizer, ids).entries()) {
    at += piece.length;
    if (text.slice(at - piece.length, at) !== piece) break;
    // A token without text is an incomplete character, which a later token completes. The prefix must not end at such a
    // token.
    if (piece !== '') [count, length] = [i + 1, at];
  }
  return { count, rest: text.slice(length) };
}
