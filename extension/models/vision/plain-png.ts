// Reads PNG files of the form that environments usually send (8 bits a sample, RGB with or without alpha, not
// interlaced, no transparent colour) about twice as fast as pngjs. Files of other forms, and files that are not
// valid, are left to pngjs, which decides whether they are damaged. Filters: section 9 of the PNG specification (W3C, 2003).
import { inflateSync } from 'node:zlib';
import { crc32 } from '../../common/crc32';

/** A chunk of a PNG file. */
export interface PngChunk {
  type: string;
  data: Buffer;
  /** The bytes of type and data, and their checksum as it is in the file. */
  content: Buffer;
  checksum: number;
}

export interface PlainPixels {
  /** 3 for RGB, 4 for RGB and alpha */
  channels: 3 | 4;
  /** [height, width, channels] */
  data: Uint8Array;
}

/**
 * Returns the pixels of a PNG file, or undefined if this function does not read its form.
 * @param chunks all chunks of the file
 */
export function plainPixels(chunks: readonly PngChunk[]): PlainPixels | undefined {
  const [{ data: header }, ...others] = chunks;
  const channels = header[9] === 2 ? 3 : header[9] === 6 ? 4 : undefined;
  if (!channels || header[8] !== 8 || header[10] !== 0 || header[11] !== 0 || header[12] !== 0) return undefined;
  if (!others.every(({ type }) => isSkipped(type) || type === 'IDAT' || type === 'IEND')) return undefined;
  if (!chunks.every(isIntact)) return undefined;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const bytes = (width * channels + 1) * height;
  const compressed = others.flatMap(({ type, data }) => (type === 'IDAT' ? [data] : []));
  try {
    const rows = inflateSync(compressed.length === 1 ? compressed[0] : Buffer.concat(compressed), {
      maxOutputLength: bytes,
      chunkSize: Math.min(bytes + 64, 2 ** 20), // a picture of an environment fits into one
    });
    const data = rows.length === bytes && unfiltered(rows, width * channels, height, channels);
    return data ? { channels, data } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the pixels do not depend on a chunk: its type begins with a small letter, and is not that of a transparent colour. */
const isSkipped = (type: string): boolean => /^[a-z]/.test(type) && type !== 'tRNS';

const isIntact = ({ content, checksum }: PngChunk): boolean => crc32(content) === checksum;

/**
 * Undoes the filter of each row; undefined if a row has an unknown filter.
 * @param rows each begins with the number of its filter, and has `length` bytes
 * @param step distance to the same channel of the pixel before
 */
function unfiltered(rows: Uint8Array, length: number, height: number, step: number): Uint8Array | undefined {
  const result = new Uint8Array(length * (height + 1)); // a row of zeros is above the first one
  for (let y = 0; y < height; y++) {
    const from = y * (length + 1);
    const undo = undoFilters[rows[from]];
    if (!undo) return undefined;
    undo(rows, from + 1, result, (y + 1) * length, length, step);
  }
  return result.subarray(length);
}

/**
 * Writes the bytes of a row to `into`, at `to` and later. The row above it ends at `to`. The row's filtered bytes are in
 * `rows`, at `from` and later.
 */
type UndoFilter = (rows: Uint8Array, from: number, into: Uint8Array, to: number, length: number, step: number) => void;

/** By the number of the filter: none, left, above, the mean of both, and Paeth's. Bytes are sums modulo 256. */
const undoFilters: readonly UndoFilter[] = [
  (rows, from, into, to, length) => into.set(rows.subarray(from, from + length), to),
  (rows, from, into, to, length, step) => {
    for (let i = 0; i < step; i++) into[to + i] = rows[from + i];
    for (let i = step; i < length; i++) into[to + i] = rows[from + i] + into[to + i - step];
  },
  (rows, from, into, to, length) => {
    for (let i = 0; i < length; i++) into[to + i] = rows[from + i] + into[to + i - length];
  },
  (rows, from, into, to, length, step) => {
    for (let i = 0; i < step; i++) into[to + i] = rows[from + i] + (into[to + i - length] >> 1);
    for (let i = step; i < length; i++)
      into[to + i] = rows[from + i] + ((into[to + i - step] + into[to + i - length]) >> 1);
  },
  (rows, from, into, to, length, step) => {
    for (let i = 0; i < step; i++) into[to + i] = rows[from + i] + into[to + i - length];
    for (let i = step; i < length; i++) {
      const left = into[to + i - step];
      const up = into[to + i - length];
      const corner = into[to + i - length - step];
      const toLeft = Math.abs(up - corner);
      const toUp = Math.abs(left - corner);
      const toCorner = Math.abs(left + up - 2 * corner);
      // The nearest one of the three; the first in this order if two are equally near.
      into[to + i] = rows[from + i] + (toLeft <= toUp && toLeft <= toCorner ? left : toUp <= toCorner ? up : corner);
    }
  },
];
