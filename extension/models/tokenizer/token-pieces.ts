// Splits decoded text into one piece per token, such that the pieces concatenate to the full text. A character whose
// bytes span several tokens belongs to the last of them, and blanks that a decoder inserts only between tokens are
// preserved. Special tokens have text too.
interface Decoder {
  decode(ids: readonly number[], options?: { special?: boolean }): string;
}

/** Maximum bytes of a character; a token has at least one byte. */
const longestCharacter = 4;
const unfinished = '\uFFFD';

export class TokenPieces {
  /** The last emitted tokens, as context for the decoder, followed by tokens that wait for the rest of a character. */
  private window: number[] = [];
  private given = 0;
  private said = '';

  constructor(private readonly decoder: Decoder) {}

  /** Returns the text this token adds; empty if it leaves a character incomplete. */
  push(id: number): string {
    this.window.push(id);
    const text = this.text();
    const waits = this.window.length - this.given < longestCharacter;
    if (text.endsWith(unfinished) && waits) return '';
    return this.give(text);
  }

  /** Returns the text of the pending tokens, even if its last character is incomplete. */
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

/** Returns the piece of each token; the last one includes any incomplete rest. */
export function tokenPieces(decoder: Decoder, ids: readonly number[]): string[] {
  const pieces = new TokenPieces(decoder);
  const texts = ids.map(id => pieces.push(id));
  const rest = pieces.rest();
  return rest === '' ? texts : texts.with(-1, texts.at(-1)! + rest);
}
