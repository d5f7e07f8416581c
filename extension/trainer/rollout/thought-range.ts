// Finds the sampled ids of a response that encode its thought, for context masks (algorithms/context-mask.ts).

/**
 * Returns the range [from, to) of the ids that encode the text between `<think>` and the first `</think>`. Ids that
 * encode a part of a tag are outside. The range is empty if the thought has no text or is not closed.
 * @param prefix the text with which every response begins, and which is not sampled
 * @param decode returns the text of ids; the text of more ids is never shorter
 */
export function thoughtRange(
  ids: readonly number[],
  prefix: string,
  decode: (ids: readonly number[]) => string,
): readonly [number, number] {
  const text = prefix + decode(ids);
  const close = text.indexOf('</think>');
  const open = text.lastIndexOf('<think>', close);
  if (open < 0 || close < 0) return [0, 0];
  const lengthOf = (count: number) => prefix.length + decode(ids.slice(0, count)).length;
  const from = firstCount(ids.length, count => lengthOf(count) >= open + '<think>'.length);
  const to = firstCount(ids.length, count => lengthOf(count + 1) > close);
  return from < to ? [from, to] : [0, 0];
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
