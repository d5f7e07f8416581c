// Finds the byte range of each row of a JSON file. If the file begins with a bracket, each object of the array is a
// row. If it begins with a brace, each line is a row (JSON Lines). The file is read once, in chunks, and only the
// ranges stay in memory.
import { closeSync, readSync } from 'node:fs';
import { openRegularFile } from './regular-file';

export interface RowExtents {
  starts: number[];
  /** For each row, the offset of the byte after its last byte. */
  ends: number[];
}

const pieceBytes = 1 << 20;
const [quote, backslash, newline, openBracket, openBrace, closeBrace] = [34, 92, 10, 91, 123, 125];
const isBlank = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13);

/**
 * Returns the byte ranges of a file's rows.
 * @throws Error if the file holds neither lines of objects nor an array of objects
 */
export function rowExtents(file: string): RowExtents {
  const starts: number[] = [];
  const ends: number[] = [];
  let array: boolean | undefined;
  let depth = 0; // nesting depth of braces in an array
  let inText = false;
  let escaped = false;
  let begun = -1; // start of the current line; -1 until the line has a non-blank byte
  let last = 0; // offset after the line's last non-blank byte
  const endLine = () => {
    if (begun >= 0) {
      starts.push(begun);
      ends.push(last);
    }
    begun = -1;
  };
  const take = (byte: number, at: number) => {
    if (array === undefined) {
      if (isBlank(byte) || byte > 127) return; // skips a byte order mark
      if (byte !== openBracket && byte !== openBrace) throw new Error('the file contains no JSON objects');
      array = byte === openBracket;
      if (array) return;
    }
    if (!array) {
      if (byte === newline) return endLine();
      if (isBlank(byte)) return;
      if (begun < 0) begun = at;
      last = at + 1;
    } else if (inText) {
      if (escaped) escaped = false;
      else if (byte === backslash) escaped = true;
      else if (byte === quote) inText = false;
    } else if (byte === quote) inText = true;
    else if (byte === openBrace) {
      if (depth++ === 0) starts.push(at);
    } else if (byte === closeBrace && --depth === 0) ends.push(at + 1);
  };
  const descriptor = openRegularFile(file);
  try {
    const piece = Buffer.allocUnsafe(pieceBytes);
    for (let offset = 0, count = -1; count !== 0; offset += count) {
      count = readSync(descriptor, piece, 0, pieceBytes, offset);
      for (let i = 0; i < count; i++) take(piece[i], offset + i);
    }
  } finally {
    closeSync(descriptor);
  }
  endLine();
  if (starts.length !== ends.length) throw new Error('the file ends in the middle of a row');
  return { starts, ends };
}
