// PNG files of plain form: the pixels are those of pngjs for every filter of rows, and files of other forms are left to
// pngjs.
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { PNG } from 'pngjs';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../../../../extension/common/crc32';
import { plainPixels } from '../../../../extension/models/vision/plain-png';
import type { PngChunk } from '../../../../extension/models/vision/plain-png';

function chunk(type: string, data: Buffer): PngChunk {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  return { type, data, content, checksum: crc32(content) };
}

interface Form {
  width: number;
  height: number;
  colour: number;
  depth?: number;
  interlace?: number;
}

function chunksOf({ width, height, colour, depth = 8, interlace = 0 }: Form, rows: Buffer): PngChunk[] {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.set([depth, colour, 0, 0, interlace], 8);
  return [chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))];
}

const signature = Buffer.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

function fileOf(chunks: readonly PngChunk[]): Buffer {
  const parts = chunks.flatMap(({ data, content, checksum }) => {
    const [length, end] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    end.writeUInt32BE(checksum);
    return [length, content, end];
  });
  return Buffer.concat([signature, ...parts]);
}

/** RGBA pixels, as pngjs returns them. */
function opaque({ channels, data }: { channels: 3 | 4; data: Uint8Array }): number[] {
  if (channels === 4) return [...data];
  return Array.from({ length: data.length / 3 }, (_, i) => [...data.subarray(3 * i, 3 * i + 3), 255]).flat();
}

/** Rows of random bytes, each with one of the five filters. */
const pictures = fc
  .record({
    width: fc.integer({ min: 1, max: 9 }),
    height: fc.integer({ min: 1, max: 9 }),
    colour: fc.constantFrom(2, 6),
  })
  .chain(form => {
    const length = form.width * (form.colour === 2 ? 3 : 4);
    const row = fc
      .tuple(fc.integer({ min: 0, max: 4 }), fc.uint8Array({ minLength: length, maxLength: length }))
      .map(([filter, bytes]) => Buffer.from([filter, ...bytes]));
    return fc
      .array(row, { minLength: form.height, maxLength: form.height })
      .map(rows => ({ form, rows: Buffer.concat(rows) }));
  });

describe('plain PNG files', () => {
  it('have the pixels that pngjs reads', () => {
    fc.assert(
      fc.property(pictures, ({ form, rows }) => {
        const chunks = chunksOf(form, rows);
        expect(opaque(plainPixels(chunks)!)).toEqual([...PNG.sync.read(fileOf(chunks)).data]);
      }),
    );
  });

  it('may have their data in several chunks, and texts between them', () => {
    const chunks = chunksOf({ width: 2, height: 1, colour: 2 }, Buffer.of(1, 10, 20, 30, 1, 2, 3));
    const { data } = chunks[1];
    const split = [
      chunks[0],
      chunk('tEXt', Buffer.from('a\0b')),
      chunk('IDAT', data.subarray(0, 3)),
      chunk('IDAT', data.subarray(3)),
      chunks[2],
    ];
    expect(plainPixels(split)).toEqual({ channels: 3, data: Uint8Array.of(10, 20, 30, 11, 22, 33) });
  });

  const form = { width: 1, height: 1, colour: 2 };
  const row = Buffer.of(0, 1, 2, 3);
  const [header, data, end] = chunksOf(form, row);
  it.each<[string, PngChunk[]]>([
    ['a palette', chunksOf({ ...form, colour: 3 }, Buffer.of(0, 1))],
    ['16 bits a sample', chunksOf({ ...form, depth: 16 }, Buffer.alloc(7))],
    ['interlaced rows', chunksOf({ ...form, interlace: 1 }, row)],
    ['a transparent colour', [header, chunk('tRNS', Buffer.alloc(6)), data, end]],
    ['an unknown chunk that must be read', [header, chunk('ABCD', Buffer.alloc(1)), data, end]],
    ['a second header', [header, header, data, end]],
    ['a wrong checksum', [header, { ...data, checksum: data.checksum ^ 1 }, end]],
    ['an unknown filter', chunksOf(form, Buffer.of(5, 1, 2, 3))],
    ['too few rows', chunksOf({ ...form, height: 2 }, row)],
    ['more data than its size', chunksOf(form, Buffer.alloc(100_000))],
    ['data that are not compressed', [header, chunk('IDAT', row), end]],
  ])('are left to pngjs with %s', (_, chunks) => {
    expect(plainPixels(chunks)).toBeUndefined();
  });
});
