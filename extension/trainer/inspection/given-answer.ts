// An answer, or its beginning, that is given by hand, as token ids behind the literal that every answer begins with. What stays of a
// recorded answer keeps its sampled ids; only what is new is tokenised.
import type { GivenAnswer } from '../../protocol/inspection';
import type { ChatTokenizer } from '../models/chat-tokenizer';
import type { AnswerTag } from '../../protocol/tagged-text';
import { tokenPieces } from '../models/token-pieces';

/** A recorded answer: the text with the literal in front, and the sampled tokens. */
export interface RecordedAnswer {
  raw: string;
  ids: readonly number[];
}

export interface GivenTokens {
  ids: number[];
  /** How many of `ids` are the recorded answer's own. */
  kept: number;
  /** The answer is whole: nothing is left to be sampled. */
  whole: boolean;
}

type Encoder = Pick<ChatTokenizer, 'encode' | 'decode' | 'stopTokenIds'>;

/**
 * @param prefix what every answer begins with: `<think>` or, without thoughts, the answer's tag
 * @param recorded the turn that is changed; null where the turn is a new one
 * @param tag what the answer stands in (`workbench.answer_tag`)
 */
export function givenTokens(
  tokenizer: Encoder,
  prefix: string,
  { thought, answer }: GivenAnswer,
  recorded: RecordedAnswer | null,
  tag: AnswerTag = 'answer',
): GivenTokens {
  const thinks = prefix === '<think>';
  if (answer === undefined) {
    const begun = thinks && thought !== undefined ? `${thought}</think>` : '';
    return { ids: tokenizer.encode(begun), kept: 0, whole: false };
  }
  const end = `${answer}</${tag}>`;
  const stop = tokenizer.stopTokenIds.slice(0, 1);
  if (thinks && thought !== undefined)
    return { ids: [...tokenizer.encode(`${thought}</think><${tag}>${end}`), ...stop], kept: 0, whole: true };
  const beginning = thinks ? new RegExp(`^<think>.*?</think>\\s*<${tag}>`, 's') : new RegExp(`^<${tag}>`);
  const before = recorded && beginning.exec(recorded.raw)?.[0];
  if (!recorded || !before) {
    const text = thinks ? `</think><${tag}>${end}` : end;
    return { ids: [...tokenizer.encode(text), ...stop], kept: 0, whole: true };
  }
  const { count, rest } = keptTokens(tokenizer, recorded.ids, before.slice(prefix.length));
  const ids = [...recorded.ids.slice(0, count), ...tokenizer.encode(rest + end), ...stop];
  return { ids, kept: count, whole: true };
}

/** The most of the first tokens whose text is within `text`, and what of it is left. */
function keptTokens(tokenizer: Encoder, ids: readonly number[], text: string): { count: number; rest: string } {
  let [count, length, at] = [0, 0, 0];
  for (const [i, piece] of tokenPieces(tokenizer, ids).entries()) {
    at += piece.length;
    if (text.slice(at - piece.length, at) !== piece) break;
    if (piece !== '') [count, length] = [i + 1, at]; // not within a character
  }
  return { count, rest: text.slice(length) };
}
