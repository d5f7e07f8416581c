// What stands between the tags of an answer. Read from left to right in one go: a regular expression with lazy parts takes a time that grows with
// the square of an answer that repeats its tags, and models do that.

/** The tags that an answer stands in: `<answer>`, or RAGEN's first `<ans>`. */
export type AnswerTag = 'answer' | 'ans';

/** The text between the first `open` and the next `close`, and where what follows it begins; null where there is no such pair. */
export function between(text: string, open: string, close: string, from = 0): { inner: string; end: number } | null {
  const at = text.indexOf(open, from);
  const to = at < 0 ? -1 : text.indexOf(close, at + open.length);
  return to < 0 ? null : { inner: text.slice(at + open.length, to), end: to + close.length };
}

/**
 * Thought and answer of a text that has both: from the first `<think>` to the first `</think>` behind which, blanks apart, an answer begins.
 * Null where there are no such.
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
    // An answer that begins later would end no sooner.
    return end < 0 ? null : { thought: text.slice(from, at), answer: text.slice(answer.lastIndex, end) };
  }
  return null;
}

/** `text`, which an environment wrote, with its pairs of `<answer>` and `</answer>` as pairs of `tag`. */
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
