// Finds a tokenizer's added tokens in a text, as the tokenizers library does in Rust (added_vocabulary.rs): the leftmost and then the longest match; a
// `single_word` token only where no word character is beside it; `lstrip` and `rstrip` tokens with the white space beside them. Words and white space are
// Unicode's, so that U+0085 is white space and U+FEFF is not. @huggingface/tokenizers ignores single_word and takes JavaScript's white space.

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
  /** By first code unit, the longest first. */
  private readonly byStart = new Map<string, AddedToken[]>();

  /** @param tokens with the content as it stands in the texts, which is normalised where they are */
  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) {
      if (token.content === '') continue;
      const start = token.content[0];
      this.byStart.set(start, [...(this.byStart.get(start) ?? []), token]);
    }
    for (const list of this.byStart.values()) list.sort((a, b) => b.content.length - a.content.length);
  }

  /** The text in pieces: ids of added tokens, and the texts between them, none of them empty. */
  split(text: string): (number | string)[] {
    if (this.byStart.size === 0) return text === '' ? [] : [text];
    const pieces: (number | string)[] = [];
    let end = 0; // of what is in pieces
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
      // The white space behind the token before may hold the beginning of this one.
      from = Math.max(from, end);
      if (from > end) pieces.push(text.slice(end, from));
      pieces.push(token.id);
      end = Math.max(to, end);
    }
    if (end < text.length) pieces.push(text.slice(end));
    return pieces;
  }
}

/** Whether neither neighbour is a character of a word. Neighbours are code points. */
function standsAlone(text: string, from: number, to: number): boolean {
  return !wordBefore.test(text.slice(Math.max(0, from - 2), from)) && !wordAfter.test(text.slice(to, to + 2));
}
