// Extracts the text between tags from a model's response in one left-to-right pass. A regular expression with lazy
// quantifiers takes quadratic time on a response that repeats a tag many times, and models do produce such responses.

/** Name of the tag around an answer: `<answer>`, or `<ans>` as in RAGEN's first version. */
export type AnswerTag = 'answer' | 'ans';

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
 * Returns the thought and the answer of a text. The thought starts at the first `<think>` and ends at the first
 * `</think>` that is followed by `<answer>`, with only whitespace between the two tags. Returns null if the text has no
 * thought followed by an answer.
 */
export function thoughtAndAnswer(text: string, tag: AnswerTag = 'answer'): { thought: string; answer: string } | null {
  const [open, close] = ['<think>', '</think>'];
  const from = text.indexOf(open) + open.length;
  if (from < open.length) return null;
  const answer = tag === 'ans' ? /\s*<ans>/y : /\s*<answer>/y;
  for (let at = text.indexOf(close, from); at >= 0; at = text.indexOf(close, at + 1)) {
    answer.lastIndex = at + close.length;
    if (!answer.test(text)) continue;
    const end = text.indexOf(`</${tag}>`, answer.lastIndex);
    // If no closing tag follows this `<answer>`, no closing tag follows a later `<answer>` either.
    return end < 0 ? null : { thought: text.slice(from, at), answer: text.slice(answer.lastIndex, end) };
  }
  return null;
}

/** Returns an environment's text in which every `<answer>…</answer>` pair is renamed to `tag`. */
export function withAnswerTag(text: string, tag: AnswerTag = 'answer'): string {
  if (tag === 'answer') return text;
  const [open, close] = ['<answer>', '</answer>'];
  const parts: string[] = [];
  let from = 0;
  for (let pair = between(text, open, close); pair; pair = between(text, open, close, from)) {
    const start = pair.end - close.length - pair.inner.length;
    parts.push(text.slice(from, start - open.length), `<${tag}>${pair.inner}</${tag}>`);
    from = pair.end;
  }
  return parts.join('') + text.slice(from);
}
