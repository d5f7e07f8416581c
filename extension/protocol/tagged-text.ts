// Extracts text between the tags of an answer in one left-to-right pass. A regular expression with lazy quantifiers
// takes quadratic time on answers that repeat their tags, as models produce.

/**
 * Returns the text between the first `open` and the next `close`, and the index after `close`; null if there is no such
 * pair.
 */
export function between(text: string, open: string, close: string, from = 0): { inner: string; end: number } | null {
  const at = text.indexOf(open, from);
  const to = at < 0 ? -1 : text.indexOf(close, at + open.length);
  return to < 0 ? null : { inner: text.slice(at + open.length, to), end: to + close.length };
}

/**
 * Returns thought and answer of a text with both. The thought reaches from the first `<think>` to the first `</think>`
 * that is followed, after optional whitespace, by `<answer>`. Null if there is no such pair.
 */
export function thoughtAndAnswer(text: string): { thought: string; answer: string } | null {
  const [open, close] = ['<think>', '</think>'];
  const from = text.indexOf(open) + open.length;
  if (from < open.length) return null;
  const answer = /\s*<answer>/y;
  for (let at = text.indexOf(close, from); at >= 0; at = text.indexOf(close, at + 1)) {
    answer.lastIndex = at + close.length;
    if (!answer.test(text)) continue;
    const end = text.indexOf('</answer>', answer.lastIndex);
    // a later answer would need a later `</answer>`
    return end < 0 ? null : { thought: text.slice(from, at), answer: text.slice(answer.lastIndex, end) };
  }
  return null;
}
