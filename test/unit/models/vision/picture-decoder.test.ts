// PNG files of observations: those that must be rejected, each with a message that names the reason, and files that are
// cut off or damaged at any byte.
import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../../../../extension/common/crc32';
import { PictureError } from '../../../../extension/models/vision/picture';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';

const file = (name: string): Buffer => readFileSync(`test/golden/vision/pictures/${name}`);

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
    file('tiny.png').subarray(0, 8),
    chunk('IHDR', ihdr),
    ...extra,
    chunk('IDAT', deflateSync(data)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('a picture that is not decoded', () => {
  it.each([
    ['an empty file', Buffer.alloc(0), 'is empty: send PNG or JPEG'],
    ['a text', Buffer.from('<svg/>'), 'is neither PNG nor JPEG: send PNG or JPEG'],
    ['a GIF file', Buffer.from('GIF89a'), 'is a GIF file: send PNG or JPEG'],
    ['a WebP file', Buffer.from('RIFF1234WEBPVP8 '), 'is a WebP file: send PNG or JPEG'],
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
      'a file with bytes after its end',
      Buffer.concat([file('tiny.png'), Buffer.of(0)]),
      'is a damaged or truncated PNG file: send the complete file',
    ],
    [
      'a file without pixels',
      png({ width: 0, height: 3 }, Buffer.alloc(9)),
      'is a damaged or truncated PNG file: send the complete file',
    ],
  ])('is %s', async (_, bytes, message) => {
    await expect(decodePicture(bytes)).rejects.toThrow(new PictureError(message));
  });

  it('is a file with too many bytes', async () => {
    await expect(decodePicture(new Uint8Array(33 * 2 ** 20))).rejects.toThrow(
      /has 34603008 bytes, and at most 33554432/,
    );
  });

  it.each(['palette.png', 'tiny-jpeg.jpg'])('is the file %s cut off at any byte', async name => {
    const bytes = file(name);
    for (let length = 0; length < bytes.length; length++)
      await expect(decodePicture(bytes.subarray(0, length)), String(length)).rejects.toThrow(PictureError);
  });
});

it('decodes an interlaced file', async () => {
  // The passes of a 2 × 2 picture: its first pixel, the second pixel of its first row, and its second row.
  const data = Buffer.of(0, 10, 20, 30, 0, 40, 50, 60, 0, 70, 80, 90, 100, 110, 120);
  const { width, height, pixels } = await decodePicture(png({ width: 2, height: 2, interlace: 1 }, data));
  expect([width, height]).toEqual([2, 2]);
  expect([...pixels]).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]);
});

/** The JPEG file with the frame header's bytes replaced: bits, height (2), width (2), channels. */
function frame(bytes: Record<number, number>): Buffer {
  const copy = Buffer.from(file('tiny-jpeg.jpg'));
  const at = copy.indexOf('ffc0', 0, 'hex') + 4;
  for (const [offset, byte] of Object.entries(bytes)) copy[at + Number(offset)] = byte;
  return copy;
}

describe('a JPEG file that is not decoded', () => {
  it.each([
    ['has 12 bits', frame({ 0: 12 }), 'has 12 bits per channel, and only 8 are decoded: save the picture with 8 bits'],
    ['is CMYK', file('cmyk.jpg'), 'has 4 colour channels (CMYK), and only RGB and grey are decoded: save it as RGB'],
    ['claims 4 gigapixels', frame({ 1: 255, 3: 255 }), /^has 65\d+ × 65\d+ pixels, and at most 16384 a side/],
    [
      'is lossless',
      frame({ [-3]: 0xc3 }),
      'is a lossless or arithmetic JPEG file: save the picture as PNG or baseline JPEG',
    ],
    [
      'has many scans',
      Buffer.concat([file('tiny-jpeg.jpg'), ...Array<Buffer>(100).fill(Buffer.of(0xff, 0xda))]),
      'has 101 scans, and at most 64 are decoded: save the picture as baseline JPEG',
    ],
  ])('%s', async (_, bytes, message) => {
    await expect(decodePicture(bytes)).rejects.toThrow(PictureError);
    await expect(decodePicture(bytes)).rejects.toThrow(message);
  });
});

it('decodes a damaged file or rejects it', async () => {
  const names = ['rgba.png', 'one-bit.png', 'palette.png', 'grey-alpha.png', 'tiny-jpeg.jpg', 'progressive.jpg'];
  const originals = names.map(file);
  const change = fc.record({ at: fc.nat(), byte: fc.nat(255) });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...originals),
      fc.array(change, { minLength: 1, maxLength: 4 }),
      async (original, changes) => {
        const bytes = Buffer.from(original);
        for (const { at, byte } of changes) bytes[at % bytes.length] = byte;
        try {
          const { width, height, pixels } = await decodePicture(bytes);
          expect(pixels.length).toBe(width * height * 3);
        } catch (error) {
          expect(error).toBeInstanceOf(PictureError);
        }
      },
    ),
    { numRuns: 300 },
  );
});
