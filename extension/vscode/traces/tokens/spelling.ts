// Decodes tokens to one text and computes the range of each token in this text. A character whose bytes span several
// tokens is in the range of each of these tokens, so that no range is empty. Each maximal invalid prefix of UTF-8
// becomes one U+FFFD, as in standard decoders. Pure functions. Invariant: a token's range contains all characters to
// which the token contributes; the ranges are ascending; every character is in a range.

/** Range [from, to) in UTF-16 code units. */
export interface Span {
  from: number;
  to: number;
}

export interface Spelling {
  text: string;
  /** Ranges of the tokens in the text, one per token. */
  ranges: Span[];
}

/**
 * Replaces characters that editors would change: \r and NUL become visible symbols, so that \n is the only line break.
 */
export const shown = (text: string): string => text.replaceAll('\r', '␍').replaceAll('\0', '␀');

/** Returns the text of the tokens and the range of each token. */
export function spell(tokens: readonly Uint8Array[]): Spelling {
  const bytes = Buffer.concat(tokens);
  /** For each byte, start and end of its character in the text. */
  const begins = new Uint32Array(bytes.length);
  const ends = new Uint32Array(bytes.length);
  const parts: string[] = [];
  let at = 0;
  for (let i = 0; i < bytes.length;) {
    const { length, valid } = characterAt(bytes, i);
    const character = valid ? bytes.toString('utf8', i, i + length) : '�';
    parts.push(character);
    begins.fill(at, i, i + length);
    at += character.length;
    ends.fill(at, i, i + length);
    i += length;
  }
  const ranges: Span[] = [];
  let first = 0;
  for (const token of tokens) {
    const last = first + token.length - 1;
    const here = first < bytes.length ? begins[first] : at;
    ranges.push(token.length === 0 ? { from: here, to: here } : { from: begins[first], to: ends[last] });
    first += token.length;
  }
  return { text: shown(parts.join('')), ranges };
}

/**
 * Returns the length of the character that starts at byte `i`. If no valid character starts there, returns the length
 * of the maximal invalid prefix (Unicode 15, table 3-7).
 */
function characterAt(bytes: Uint8Array, i: number): { length: number; valid: boolean } {
  const lead = bytes[i];
  if (lead < 0x80) return { length: 1, valid: true };
  const size =
    lead >= 0xc2 && lead <= 0xdf ? 2 : lead >= 0xe0 && lead <= 0xef ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
  if (size === 0) return { length: 1, valid: false };
  const lowest = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const highest = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  for (let n = 1; n < size; n++) {
    const next = bytes[i + n];
    const fits = n === 1 ? next >= lowest && next <= highest : next >= 0x80 && next <= 0xbf;
    if (!fits) return { length: n, valid: false };
  }
  return { length: size, valid: true };
}
