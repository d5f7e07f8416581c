// Readers of other trainers' JSON lines. Python writes `NaN` and `Infinity`, which are not JSON; they are read as null.
// A line is skipped if it is invalid or longer than 64 MiB, and an incomplete last line is not read.
import { isRecord, jsonOrNothing } from '../common/json';
import { lineSlices, readRange } from '../node/json-lines';
import { mostLineBytes } from '../run-data/run-file-names';
import { openRegular } from '../node/bounded-file';
import type { SourceFolder } from './source-folder';

/** Returns the JSON object in a line, with `NaN` and `Infinity` as null; undefined if the line is no object. */
export function looseRecord(line: string): Record<string, unknown> | undefined {
  const value = jsonOrNothing(line) ?? (/NaN|Infinity/.test(line) ? jsonOrNothing(withNulls(line)) : undefined);
  return isRecord(value) ? value : undefined;
}

/** Replaces `NaN` and `Infinity` outside of strings by `null`. */
const withNulls = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, part => (part.startsWith('"') ? part : 'null'));

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

/** Yields the objects of a file of JSON lines, null for a line that is no object. Memory: one slice of the file. */
export async function* recordsOf(source: SourceFolder, name: string): AsyncGenerator<Record<string, unknown> | null> {
  const handle = await openRegular(source.at(name), source.root);
  try {
    const { size } = await handle.stat();
    let end = 0;
    for await (const { bytes, offset } of lineSlices(handle, { offset: 0, skipping: false }, size)) {
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
