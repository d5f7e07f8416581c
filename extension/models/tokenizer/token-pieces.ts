// Splits decoded text into one piece per token; the concatenated pieces are the complete text. If the bytes of a
// character are in several tokens, the character is in the piece of the last of these tokens. Blanks that a decoder
// inserts between tokens are preserved. Special tokens are not omitted: their pieces contain their text.
interface Decoder {
  decode(ids: readonly number[], options?: { special?: boolean }): string;
}

/** Maximum bytes of a character; a token has at least one byte. */
const longestCharacter = 4;
const unfinished = '\uFFFD';

export class TokenPieces {
  /**
   * Contains the tokens of the last returned piece, and after them the pending tokens. The decoder needs the tokens of
   * the last piece as context. The text of the pending tokens is not returned yet, because its last character is
   * incomplete.
   */
  private window: number[] = [];
  private given = 0;
  private said = '';

  constructor(private readonly decoder: Decoder) {}

  /** Adds a token. Returns the text that the token completes; empty if the token ends within a character. */
  push(id: number): string {
    this.window.push(id);
    const text = this.text();
    const waits = this.window.length - this.given < longestCharacter;
    if (text.endsWith(unfinished) && waits) return '';
    return this.give(text);
  }

  /** Returns the text of the pending tokens, whose last character may be incomplete. */
  rest(): string {
    return this.window.length > this.given ? this.give(this.text()) : '';
  }

  private give(text: string): string {
    const piece = text.slice(this.said.length);
    this.window = this.window.slice(this.given);
    this.given = this.window.length;
    this.said = this.text();
    return piece;
  }

  private text(): string {
    return this.decoder.decode(this.window, { special: true });
  }
}

/** Returns the piece of each token; the last piece includes an incomplete character at the end. */
export function tokenPieces(decoder: Decoder, ids: readonly number[]): string[] {
  const pieces = new TokenPieces(decoder);
  const texts = ids.map(id => pieces.push(id));
  const rest = pieces.rest();
  return rest === '' ? texts : texts.with(-1, texts.at(-1)! + rest);
}
