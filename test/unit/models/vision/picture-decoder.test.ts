// PNG files of observations: those that must be rejected, each with a message that names the reason, and files that are
// cut off or damaged at any byte.
import { readFileSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PictureError } from '../../../../extension/models/vision/picture';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';

const file = (name: string): Buffer => readFileSync(`test/golden/vision/pictures/${name}.png`);

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

interface Header {
  width: number;
  height: number;
  depth?: number;
  colour?: number;
  interlace?: number;
}

/** A PNG file of the given header and decompressed data. */
function png(header: Header, data: Uint8Array, extra: Buffer[] = []): Buffer {
  const { width, height, depth = 8, colour = 2, interlace = 0 } = header;
  const ihdr = Buffer.alloc(13);
  ihdr.writeUInt32BE(width);
  ihdr.writeUInt32BE(height, 4);
  ihdr.set([depth, colour, 0, 0, interlace], 8);
  return Buffer.concat([
    file('tiny').subarray(0, 8),
    chunk('IHDR', ihdr),
    ...extra,
    chunk('IDAT', deflateSync(data)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('a picture that is not decoded', () => {
  it.each([
    ['an empty file', Buffer.alloc(0), 'is empty: send a PNG file'],
    ['a text', Buffer.from('<svg/>'), 'is no PNG file: send a PNG file'],
    ['a JPEG file', Buffer.of(0xff, 0xd8, 0xff, 0xe0), 'is a JPEG file: send a PNG file'],
    ['a GIF file', Buffer.from('GIF89a'), 'is a GIF file: send a PNG file'],
    ['a WebP file', Buffer.from('RIFF1234WEBPVP8 '), 'is a WebP file: send a PNG file'],
    [
      'a file that claims 4 gigapixels',
      png({ width: 65_535, height: 65_535 }, Buffer.alloc(9)),
      'has 65535 × 65535 pixels, and at most 16384 a side and 16777216 in all are decoded: send a smaller picture',
    ],
    [
      'a file of many pixels with short sides',
      png({ width: 16_000, height: 16_000 }, Buffer.alloc(9)),
      'has 16000 × 16000 pixels, and at most 16384 a side and 16777216 in all are decoded: send a smaller picture',
    ],
    [
      'a file with 16 bits per channel',
      png({ width: 1, height: 1, depth: 16 }, Buffer.alloc(7)),
      'has 16 bits per channel, and only 8 are decoded: save the picture with 8 bits',
    ],
    [
      'an animated file',
      png({ width: 1, height: 1 }, Buffer.alloc(4), [chunk('acTL', Buffer.alloc(8))]),
      'is an animated PNG file: send one PNG file per frame',
    ],
    [
      'an interlaced file that decompresses to more than its size',
      png({ width: 2, height: 2, interlace: 1 }, Buffer.alloc(10_000_000)),
      'is a damaged or truncated PNG file: send the complete file',
    ],
    [
      'a file without pixels',
      png({ width: 0, height: 3 }, Buffer.alloc(9)),
      'is a damaged or truncated PNG file: send the complete file',
    ],
  ])('is %s', (_, bytes, message) => {
    expect(() => decodePicture(bytes)).toThrow(new PictureError(message));
  });

  it('is a file with too many bytes', () => {
    expect(() => decodePicture(new Uint8Array(33 * 2 ** 20))).toThrow(/has 34603008 bytes, and at most 33554432/);
  });

  it('is a file cut off at any byte', () => {
    const bytes = file('palette');
    for (let length = 0; length < bytes.length; length++)
      expect(() => decodePicture(bytes.subarray(0, length)), String(length)).toThrow(PictureError);
  });
});

it('decodes an interlaced file', () => {
  // The passes of a 2 × 2 picture: its first pixel, the second pixel of its first row, and its second row.
  const data = Buffer.of(0, 10, 20, 30, 0, 40, 50, 60, 0, 70, 80, 90, 100, 110, 120);
  const { width, height, pixels } = decodePicture(png({ width: 2, height: 2, interlace: 1 }, data));
  expect([width, height]).toEqual([2, 2]);
  expect([...pixels]).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]);
});

it('decodes a damaged file or rejects it', () => {
  const originals = ['rgba', 'one-bit', 'palette', 'grey-alpha'].map(file);
  const change = fc.record({ at: fc.nat(), byte: fc.nat(255) });
  fc.assert(
    fc.property(
      fc.constantFrom(...originals),
      fc.array(change, { minLength: 1, maxLength: 4 }),
      (original, changes) => {
        const bytes = Buffer.from(original);
        for (const { at, byte } of changes) bytes[at % bytes.length] = byte;
        try {
          const { width, height, pixels } = decodePicture(bytes);
          expect(pixels.length).toBe(width * height * 3);
        } catch (error) {
          expect(error).toBeInstanceOf(PictureError);
        }
      },
    ),
    { numRuns: 300 },
  );
});
