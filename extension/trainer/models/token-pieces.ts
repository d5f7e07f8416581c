// Texts of single tokens, one after the other, that together are the text of all: a character whose bytes several tokens hold is given with
// the last of them, and blanks that a decoder writes between tokens only are there. Special tokens have their text too.
interface Decoder {
  decode(ids: readonly number[], options?: { special?: boolean }): string;
}

/** A character has at most so many bytes, and a token at least one. */
const longestCharacter = 4;
const unfinished = '\uFFFD';

export class TokenPieces {
  /** The tokens given last, for what a decoder writes behind them, then those that wait for the rest of a character. */
  private window: number[] = [];
  private given = 0;
  private said = '';

  constructor(private readonly decoder: Decoder) {}

  /** The text that this token adds; empty where it only begins a character. */
  push(id: number): string {
    this.window.push(id);
    const text = this.text();
    const waits = this.window.length - this.given < longestCharacter;
    if (text.endsWith(unfinished) && waits) return '';
    return this.give(text);
  }

  /** What still waits, as it is. */
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

/** The piece of each token; the last holds what is left over. */
export function tokenPieces(decoder: Decoder, ids: readonly number[]): string[] {
  const pieces = new TokenPieces(decoder);
  const texts = ids.map(id => pieces.push(id));
  const rest = pieces.rest();
  return rest === '' ? texts : texts.with(-1, texts.at(-1)! + rest);
}
