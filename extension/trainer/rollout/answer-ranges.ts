// Finds the sampled ids of a response that encode its thought or its answer, for context masks
// (algorithms/context-mask.ts) and heat maps (trainer/inspection/heat-maps.ts).
import type { AnswerTag } from '../../common/tagged-text';

/** Ids [from, to) of a response. */
export type IdRange = readonly [number, number];

/** Returns the text of ids; the text of more ids is never shorter. */
type Decode = (ids: readonly number[]) => string;

/**
 * Returns the range of the ids that encode the text between `<think>` and the first `</think>`. Ids that encode a part of
 * a tag are outside. The range is empty if the thought has no text or is not closed.
 * @param prefix the text with which every response begins, and which is not sampled
 */
export function thoughtRange(ids: readonly number[], prefix: string, decode: Decode): IdRange {
  const text = prefix + decode(ids);
  const close = text.indexOf('</think>');
  const open = text.lastIndexOf('<think>', close);
  return open < 0 || close < 0 ? [0, 0] : idsOfText(ids, prefix, decode, [open + '<think>'.length, close]);
}

/**
 * Returns the range of the ids that encode the text between the last opening answer tag and the closing tag after it. The
 * range is empty if the answer has no text or is not closed.
 */
export function answerRange(ids: readonly number[], prefix: string, decode: Decode, tag: AnswerTag): IdRange {
  const text = prefix + decode(ids);
  const open = text.lastIndexOf(`<${tag}>`);
  const close = text.indexOf(`</${tag}>`, open);
  return open < 0 || close < 0 ? [0, 0] : idsOfText(ids, prefix, decode, [open + tag.length + 2, close]);
}

/** Returns the ids that encode only characters of a part [from, to) of the text. */
function idsOfText(ids: readonly number[], prefix: string, decode: Decode, [from, to]: IdRange): IdRange {
  const lengthOf = (count: number) => prefix.length + decode(ids.slice(0, count)).length;
  const first = firstCount(ids.length, count => lengthOf(count) >= from);
  const end = firstCount(ids.length, count => lengthOf(count + 1) > to);
  return first < end ? [first, end] : [0, 0];
}

/** Returns the smallest count from 0 to `most` for which the condition holds; it must hold for all larger counts. */
function firstCount(most: number, holds: (count: number) => boolean): number {
  let [low, high] = [0, most];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
