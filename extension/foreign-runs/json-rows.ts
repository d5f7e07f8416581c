// Readers of other trainers' JSON lines. Python writes `NaN` and `Infinity`, which are not JSON; they are read as null.
// A line is skipped if it is invalid, longer than 64 MiB or nested too deeply, and an incomplete last line is not read.
import { isRecord, jsonOrNothing } from '../common/json';
import { lineSlices, readRange } from '../node/json-lines';
import { mostLineBytes } from '../run-data/run-file-names';
import { openRegular } from '../node/bounded-file';
import type { SourceFolder } from './source-folder';

/** Maximum depth of a value: code that walks it recursively would otherwise exhaust the stack. */
const mostDepth = 100;

/**
 * Returns the JSON object in a line, with `NaN` and `Infinity` as null; undefined if the line is no object or is nested
 * more than 100 levels deep. A byte order mark is left out.
 */
export function looseRecord(line: string): Record<string, unknown> | undefined {
  const text = line.startsWith('\ufeff') ? line.slice(1) : line;
  const value = jsonOrNothing(text) ?? (/NaN|Infinity/.test(text) ? jsonOrNothing(withNulls(text)) : undefined);
  return isRecord(value) && isWithin(value, mostDepth) ? value : undefined;
}

function isWithin(value: object, depth: number): boolean {
  for (const each of Array.isArray(value) ? value : Object.values(value))
    if (typeof each === 'object' && each !== null && (depth <= 0 || !isWithin(each as object, depth - 1))) return false;
  return true;
}

/**
 * Replaces `NaN` and `Infinity` outside of strings by `null`. It passes over the text once: a regular expression that
 * skips strings takes quadratic time if one of them is not closed.
 */
function withNulls(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    const quote = text.indexOf('"', at);
    parts.push(text.slice(at, quote < 0 ? text.length : quote).replace(/-?\b(?:NaN|Infinity)\b/g, 'null'));
    if (quote < 0) break;
    const end = endOfString(text, quote + 1);
    parts.push(text.slice(quote, end));
    at = end;
  }
  return parts.join('');
}

/** Returns the index after the quote that closes a string; the end of the text if none does. */
function endOfString(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let slashes = quote;
    while (slashes > from && text[slashes - 1] === '\\') slashes--;
    if ((quote - slashes) % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** Returns the finite numbers of a record by their keys; flags are 0 and 1. Keys in `but` are left out. */
export function numbersIn(record: Record<string, unknown>, but: readonly string[] = []): Record<string, number> {
  const values: Record<string, number> = {};
  for (const [key, value] of Object.entries(record)) {
    if (but.includes(key)) continue;
    if (typeof value === 'number' && Number.isFinite(value)) values[key] = value;
    else if (typeof value === 'boolean') values[key] = Number(value);
  }
  return values;
}

/** Converts a time to milliseconds since 1970: seconds since 1970, or an ISO text; undefined for other values. */
export function milliseconds(time: unknown): number | undefined {
  const ms = typeof time === 'number' ? time * 1000 : typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? ms : undefined;
}

/** Returns a step as a whole number from 0 on; undefined for other values. */
export function stepOf(value: unknown): number | undefined {
  const step = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(step) && (step as number) >= 0 ? (step as number) : undefined;
}

/** Yields the objects of a file of JSON lines, null for a line that is no object or too long. Memory: one slice. */
export async function* recordsOf(source: SourceFolder, name: string): AsyncGenerator<Record<string, unknown> | null> {
  const handle = await openRegular(source.at(name), source.root);
  try {
    const { size } = await handle.stat();
    let [end, wasSkipping] = [0, false];
    for await (const { bytes, offset, skipping } of lineSlices(handle, { offset: 0, skipping: false }, size)) {
      if (skipping && !wasSkipping) yield null;
      wasSkipping = skipping;
      for (const line of bytes.toString('utf8').split('\n')) if (line.trim() !== '') yield looseRecord(line) ?? null;
      end = offset;
    }
    // A finished file may lack its last newline. An incomplete line is no JSON.
    if (end < size && size - end <= mostLineBytes) {
      const last = looseRecord((await readRange(handle, end, size - end)).toString('utf8'));
      if (last) yield last;
    }
  } finally {
    await handle.close();
  }
}
