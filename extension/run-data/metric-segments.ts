// `metrics.columns`: the numbers of metrics.jsonl as columns, in segments of several hundred lines. With this file, a
// run of 100,000 steps is opened without parsing the lines of metrics.jsonl. The file metrics.jsonl is authoritative: a
// segment is valid only while the bytes of metrics.jsonl that it covers, and all bytes before them, are unchanged.
// Readers parse the lines after the last segment from metrics.jsonl. A segment begins with 8 magic bytes, the length of
// the header (4 bytes), 4 zero bytes, and the header as JSON, padded with blanks to a multiple of 8 bytes. The header
// is followed by one column per key, with little-endian float64 values; a value is NaN if the line lacks the key. The
// first key is `step`.

/** The numbers of a line of metrics.jsonl. */
export type MetricNumbers = { step: number } & Record<string, number>;

export interface MetricSegment {
  /** Byte range [from, to) of metrics.jsonl that the segment covers. */
  from: number;
  to: number;
  /**
   * The last bytes of metrics.jsonl before `to`, as base64. Readers compare them with the file to verify the segment.
   */
  tail: string;
  rows: number;
  /** Columns by key, each with `rows` numbers. */
  columns: Map<string, Float64Array>;
}

/** Number of lines per segment. */
export const segmentRows = 512;

/** Number of bytes of metrics.jsonl that `tail` contains. */
export const tailBytes = 64;

const magic = 'RAGNCOL1';
const prefix = 16;

/** Returns the numbers of a parsed line, or null if it is not a metrics line. */
export function numbersOf(line: unknown): MetricNumbers | null {
  if (typeof line !== 'object' || line === null || !Number.isInteger((line as MetricNumbers).step)) return null;
  const numbers = {} as MetricNumbers;
  for (const key in line) {
    const value = (line as Record<string, unknown>)[key];
    if (typeof value === 'number') numbers[key] = value;
  }
  return numbers;
}

/** Converts lines to columns, with NaN for each key that a line lacks. The first key is `step`. */
export function columnsOf(lines: readonly MetricNumbers[]): Map<string, Float64Array> {
  const columns = new Map([['step', new Float64Array(lines.length)]]);
  lines.forEach((line, row) => {
    for (const key in line) {
      let column = columns.get(key);
      if (!column) columns.set(key, (column = new Float64Array(lines.length).fill(Number.NaN)));
      column[row] = line[key];
    }
  });
  return columns;
}

/** Encodes a segment as bytes to append to `metrics.columns`. */
export function encodeSegment({ from, to, tail, rows, columns }: MetricSegment): Uint8Array {
  const header = JSON.stringify({ from, to, tail, rows, keys: [...columns.keys()] });
  const text = new TextEncoder().encode(header);
  const length = Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(prefix + length + columns.size * rows * 8);
  bytes.set(new TextEncoder().encode(magic));
  const view = new DataView(bytes.buffer);
  view.setUint32(8, length, true);
  bytes.fill(0x20, prefix, prefix + length);
  bytes.set(text, prefix);
  let at = prefix + length;
  for (const column of columns.values()) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, rows * 8), at);
    at += rows * 8;
  }
  return bytes;
}

/**
 * Returns the segments of a file in order, each with its end offset. Stops at the first truncated or invalid segment.
 * The columns are views of `buffer`: no bytes are swapped, because the file and all platforms of Node.js are
 * little-endian.
 */
export function decodeSegments(buffer: ArrayBuffer): { segment: MetricSegment; end: number }[] {
  const found: { segment: MetricSegment; end: number }[] = [];
  const text = new TextDecoder();
  for (let at = 0; at + prefix <= buffer.byteLength;) {
    if (text.decode(new Uint8Array(buffer, at, 8)) !== magic) break;
    const length = new DataView(buffer, at + 8).getUint32(0, true);
    const data = at + prefix + length;
    if (length % 8 !== 0 || data > buffer.byteLength) break;
    const header = headerOf(text.decode(new Uint8Array(buffer, at + prefix, length)));
    if (!header) break;
    const { keys, ...about } = header;
    const end = data + keys.length * about.rows * 8;
    if (end > buffer.byteLength) break;
    const columns = new Map(
      keys.map((key, i) => [key, new Float64Array(buffer, data + i * about.rows * 8, about.rows)]),
    );
    found.push({ segment: { ...about, columns }, end });
    at = end;
  }
  return found;
}

type Header = Omit<MetricSegment, 'columns'> & { keys: string[] };

function headerOf(text: string): Header | null {
  try {
    const header = JSON.parse(text) as Header;
    const whole = [header.from, header.to, header.rows].every(value => Number.isSafeInteger(value) && value >= 0);
    return whole && typeof header.tail === 'string' && Array.isArray(header.keys) ? header : null;
  } catch {
    return null;
  }
}
