// Where each row of a JSON file begins and ends, in bytes: the lines of JSON Lines, or the objects of one array, told apart by the
// file's first character. The file is read once in pieces and nothing of it is kept.
import { closeSync, readSync } from 'node:fs';
import { openRegularFile } from './regular-file';

export interface RowExtents {
  starts: number[];
  /** The byte behind each row's last. */
  ends: number[];
}

const pieceBytes = 1 << 20;
const [quote, backslash, newline, openBracket, openBrace, closeBrace] = [34, 92, 10, 91, 123, 125];
const isBlank = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13);

/** @throws Error where the file holds neither lines of objects nor an array of them */
export function rowExtents(file: string): RowExtents {
  const starts: number[] = [];
  const ends: number[] = [];
  let array: boolean | undefined;
  let depth = 0; // of braces within an array's row
  let inText = false;
  let escaped = false;
  let begun = -1; // of the line in hand
  let last = 0; // byte behind the line's last that is no blank
  const endLine = () => {
    if (begun >= 0) {
      starts.push(begun);
      ends.push(last);
    }
    begun = -1;
  };
  const take = (byte: number, at: number) => {
    if (array === undefined) {
      if (isBlank(byte) || byte > 127) return; // a byte order mark
      if (byte !== openBracket && byte !== openBrace) throw new Error('it holds no JSON objects');
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
  if (starts.length !== ends.length) throw new Error('it ends in the middle of a row');
  return { starts, ends };
}
