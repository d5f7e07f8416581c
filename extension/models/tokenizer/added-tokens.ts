// Splits a text at a tokenizer's added tokens, like the Rust tokenizers library (added_vocabulary.rs). The leftmost
// match wins; of several matches at the same position, the longest wins. A `single_word` token matches only if no word
// character is adjacent. An `lstrip` token includes the white space before it; an `rstrip` token includes the white
// space after it. Word characters and white space are defined by Unicode, so U+0085 is white space and U+FEFF is not.
// @huggingface/tokenizers ignores single_word and uses JavaScript's white space.

/** An entry of `added_tokens` in tokenizer.json. */
export interface AddedToken {
  id: number;
  content: string;
  single_word?: boolean;
  lstrip?: boolean;
  rstrip?: boolean;
  normalized?: boolean;
  special?: boolean;
}

const wordBefore = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]$/u;
const wordAfter = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;
const isSpace = /^\p{White_Space}$/u;

export class AddedTokens {
  /** Tokens by their first code unit, longest first. */
  private readonly byStart = new Map<string, AddedToken[]>();

  /** @param tokens added tokens. To find them in normalised texts, normalise their `content` first. */
  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) {
      if (token.content === '') continue;
      const start = token.content[0];
      this.byStart.set(start, [...(this.byStart.get(start) ?? []), token]);
    }
    for (const list of this.byStart.values()) list.sort((a, b) => b.content.length - a.content.length);
  }

  /** Splits the text into ids of added tokens and the non-empty texts between them. */
  split(text: string): (number | string)[] {
    if (this.byStart.size === 0) return text === '' ? [] : [text];
    const pieces: (number | string)[] = [];
    let end = 0; // index after the previous token
    let at = 0;
    while (at < text.length) {
      const token = this.byStart.get(text[at])?.find(({ content }) => text.startsWith(content, at));
      if (!token) {
        at++;
        continue;
      }
      let from = at;
      let to = at + token.content.length;
      at = to;
      if (token.single_word && !standsAlone(text, from, to)) continue;
      if (token.lstrip) while (from > end && isSpace.test(text[from - 1])) from--;
      if (token.rstrip) while (to < text.length && isSpace.test(text[to])) to++;
      // A previous token with rstrip includes the white space after it. The current token may start within that white
      // space.
      from = Math.max(from, end);
      if (from > end) pieces.push(text.slice(end, from));
      pieces.push(token.id);
      end = Math.max(to, end);
    }
    if (end < text.length) pieces.push(text.slice(end));
    return pieces;
  }
}

/** Whether the range has no adjacent word character. */
function standsAlone(text: string, from: number, to: number): boolean {
  return !wordBefore.test(text.slice(Math.max(0, from - 2), from)) && !wordAfter.test(text.slice(to, to + 2));
}
