// Scans episode files: builds missing index lines and searches texts. Both tasks read complete files synchronously, so
// they run in a worker (episode-worker.ts). Texts are searched in the raw bytes: a term is converted to a pattern that
// matches the term's UTF-8 JSON encoding. A match is valid if it is inside the string of a state, an answer, the final
// state or the error. These strings are delimited by unescaped quotation marks, because JSON escapes all quotation
// marks inside a string. Must not import `vscode`.
import { closeSync, fstatSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { openRegularSync } from '../../../node/bounded-file';
import { jsonOrNothing } from '../../../common/json';
import { addToIndex, indexLine, type EpisodeIndexLine } from '../../../run-data/episode-index-line';
import type { TextTerm } from '../../../run-data/episode-filter';
import { requireLogSize } from '../../../node/read-run-file';
import { episodeSchema } from '../../../run-data/episode';
import { mostLineBytes } from '../../../run-data/run-file-names';

export interface ScanFile {
  path: string;
  mode: 'train' | 'val';
  step: number;
}

/** A file to search: for each of its episodes, the byte range of the texts and the row number. */
export interface SearchFile {
  path: string;
  at: Float64Array;
  texts: Int32Array;
  rows: Int32Array;
}

/** Interface of the scanner, implemented by the worker thread and by direct calls. */
export interface EpisodeScanner {
  /** Reads the complete lines of a file from byte `from` on, and returns the index line that describes them. */
  index(file: ScanFile, from: number): Promise<EpisodeIndexLine>;
  /**
   * Finds the rows whose texts satisfy all terms. Calls `found` with each batch of found rows, and with the share of
   * the files that was searched so far. Returns false if the search was cancelled; a new search or `end` cancels the
   * running search.
   */
  search(files: SearchFile[], terms: TextTerm[], found: (rows: Int32Array, share: number) => void): Promise<boolean>;
  end(): void;
}

/**
 * Reads the complete lines of a file, starting at byte `from`, and returns the index entry that describes them. Throws
 * on file errors.
 */
export function indexOfFile({ path, mode, step }: ScanFile, from: number): EpisodeIndexLine {
  const line = indexLine(mode, step, from);
  for (const { bytes, to } of slicesOf(path, from)) {
    const at = to - bytes.length;
    for (let start = 0, end = bytes.indexOf(0x0a); end >= 0; start = end + 1, end = bytes.indexOf(0x0a, start)) {
      const { data } = episodeSchema.safeParse(jsonOrNothing(bytes.toString('utf8', start, end)));
      if (!data) {
        line.to = at + end + 1; // the line is not an episode and is skipped
        continue;
      }
      const messages = bytes.indexOf(beforeMessages, start);
      const turns = bytes.indexOf(beforeTurns, start);
      // Text searches read a line only up to its messages. If the line's keys are not in the trainer's order, searches
      // read the complete line.
      const usual = turns >= 0 && turns < messages && messages < end;
      addToIndex(line, data, at + end + 1, usual ? messages - start : end - start);
    }
    line.to = to;
  }
  return line;
}

/** Returns the rows of a file whose texts satisfy the terms. */
export function searchFile({ path, at, texts, rows }: SearchFile, terms: readonly TextPattern[]): number[] {
  const found: number[] = [];
  const fd = openRegularSync(path, runOf(path));
  try {
    let bytes = Buffer.alloc(1 << 16);
    for (let i = 0; i < rows.length; i++) {
      if (bytes.length < texts[i]) bytes = Buffer.alloc(texts[i] * 2);
      const length = readSync(fd, bytes, 0, texts[i], at[i]);
      if (passes(bytes.toString('latin1', 0, length), terms)) found.push(rows[i]);
    }
    return found;
  } finally {
    closeSync(fd);
  }
}

export interface TextPattern {
  pattern: RegExp;
  not: boolean;
}

/** Converts terms to patterns that match a line whose bytes were decoded as Latin-1. */
export const textPatterns = (terms: readonly TextTerm[]): TextPattern[] =>
  terms.map(({ value, not }) => ({ pattern: new RegExp(bytePattern(value), 'g'), not }));

/** Whether the texts of a line, decoded as Latin-1, satisfy all terms. */
export function passes(line: string, terms: readonly TextPattern[]): boolean {
  return terms.every(({ pattern, not }) => holds(line, pattern) !== not);
}

function holds(line: string, pattern: RegExp): boolean {
  pattern.lastIndex = 0;
  for (let hit = pattern.exec(line); hit; hit = pattern.exec(line)) {
    if (!isEscaped(line, hit.index) && inText(line, hit.index)) return true;
    pattern.lastIndex = hit.index + 1;
  }
  return false;
}

const textKeys = ['"state":', '"raw":', '"final_state":', '"error":'];

/** Whether a position is inside the string value of one of the searched keys. */
function inText(line: string, offset: number): boolean {
  for (let quote = line.lastIndexOf('"', offset - 1); quote >= 0; quote = line.lastIndexOf('"', quote - 1)) {
    if (!isEscaped(line, quote)) return textKeys.some(key => line.endsWith(key, quote));
  }
  return false;
}

/** Whether the character at a position is escaped by a backslash. */
function isEscaped(line: string, offset: number): boolean {
  let slashes = 0;
  while (line[offset - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 1;
}

/** Returns a case-insensitive pattern that finds a text in the UTF-8 bytes of a JSON string. */
function bytePattern(text: string): string {
  const bytes = (part: string) =>
    [...Buffer.from(JSON.stringify(part).slice(1, -1), 'utf8')]
      .map(byte => `\\x${byte.toString(16).padStart(2, '0')}`)
      .join('');
  return [...text]
    .map(letter => {
      const forms = [...new Set([letter, letter.toLowerCase(), letter.toUpperCase()].map(bytes))];
      return forms.length === 1 ? forms[0] : `(?:${forms.join('|')})`;
    })
    .join('');
}

const beforeMessages = Buffer.from(',"messages":');
const beforeTurns = Buffer.from('"turns":');

/** Run folder of an episode file, two levels up. */
const runOf = (path: string): string => dirname(dirname(path));

/** Number of bytes read at a time; doubled until it is sufficient for a complete line. */
const sliceBytes = 1 << 22;

/**
 * Yields slices of complete lines of a file from byte `from` on, each with its end offset. For a line longer than
 * `mostLineBytes`, only the end offset is yielded. An incomplete last line is not yielded.
 */
function* slicesOf(path: string, from: number): Generator<{ bytes: Buffer; to: number }> {
  const fd = openRegularSync(path, runOf(path));
  try {
    const { size } = fstatSync(fd);
    requireLogSize(path, size);
    let skipping = false;
    for (let at = from, length = sliceBytes; at < size;) {
      const bytes = rangeOf(fd, at, Math.min(length, size - at));
      if (bytes.length === 0) return; // the file was truncated meanwhile
      const first = skipping ? bytes.indexOf(0x0a) + 1 : 0;
      const end = bytes.lastIndexOf(0x0a) + 1;
      if (end > 0) {
        skipping = false;
        length = sliceBytes;
        at += end;
        yield { bytes: bytes.subarray(first, end), to: at };
      } else if (skipping || length >= mostLineBytes) {
        skipping = true;
        length = sliceBytes;
        at += bytes.length;
      } else if (bytes.length < length)
        return; // an incomplete last line
      else length *= 2; // the line is longer than the slice
    }
  } finally {
    closeSync(fd);
  }
}

function rangeOf(fd: number, from: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const read = readSync(fd, bytes, filled, length - filled, from + filled);
    if (read === 0) break;
    filled += read;
  }
  return bytes.subarray(0, filled);
}
