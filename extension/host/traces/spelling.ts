// Tokens spelled out as one text, and which part of it is whose. A character whose bytes lie in several tokens belongs to each of them, so
// that no token is without a place. Bytes that are no UTF-8 become U+FFFD as decoders do it (the longest beginning of a character at a
// time). Pure. Invariant: every token's range holds the whole of what the token spells, ranges grow, and together they cover the text.

/** Range in UTF-16 code units, `to` left out. */
export interface Span {
  from: number;
  to: number;
}

export interface Spelling {
  text: string;
  /** One a token. */
  ranges: Span[];
}

/** A text as an editor shows it: its only line break is \n, and the two characters that editors change stand as their pictures. */
export const shown = (text: string): string => text.replaceAll('\r', '␍').replaceAll('\0', '␀');

/** The text of the tokens with each one's range. */
export function spell(tokens: readonly Uint8Array[]): Spelling {
  const bytes = Buffer.concat(tokens);
  /** For each byte where its character begins and ends in the text. */
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

/** How many bytes from `i` on are a character, or the beginning of one that does not go on (Unicode 15, table 3-7). */
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
