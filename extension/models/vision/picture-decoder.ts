// Decodes the pictures of observations into the pixels that transformers' image processors start from: 8-bit RGB,
// transparency composited onto white with Pillow's integer arithmetic (ImagingAlphaComposite). Files that a processor
// would read differently from how they look (16 bits per channel, animation) are rejected. Sizes are checked before
// pixels are decompressed.
import { inflateSync } from 'node:zlib';
import { PNG } from 'pngjs';
import { decodeJpeg, isJpeg } from './jpeg-decoder';
import { PictureError, checkPictureSize, maxPictureBytes } from './picture';
import type { Picture } from './picture';
import { plainPixels } from './plain-png';
import type { PngChunk } from './plain-png';

const signature = Buffer.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/**
 * Returns the pixels of a PNG or JPEG file.
 * @throws PictureError if the file has another format, is damaged, or exceeds the limits of picture.ts
 */
export async function decodePicture(file: Uint8Array): Promise<Picture> {
  if (file.length > maxPictureBytes)
    throw new PictureError(
      `has ${file.length} bytes, and at most ${maxPictureBytes} are decoded: send a smaller picture`,
    );
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (isJpeg(bytes)) return decodeJpeg(bytes);
  if (!bytes.subarray(0, 8).equals(signature)) throw new PictureError(`is ${formatOf(bytes)}: send PNG or JPEG`);
  return decodePng(bytes);
}

function decodePng(bytes: Buffer): Picture {
  const header = readHeader(bytes);
  const { width, height, chunks } = header;
  const plain = plainPixels(chunks);
  if (plain) return { width, height, pixels: plain.channels === 3 ? plain.data : onWhite(plain.data) };
  if (header.interlaced) checkInflatedSize(header);
  try {
    return { width, height, pixels: onWhite(PNG.sync.read(bytes).data) };
  } catch {
    throw damaged();
  }
}

const damaged = (): PictureError => new PictureError('is a damaged or truncated PNG file: send the complete file');

function formatOf(bytes: Buffer): string {
  if (bytes.length === 0) return 'empty';
  const starts = (text: string, at = 0): boolean => bytes.toString('latin1', at, at + text.length) === text;
  if (starts('GIF8')) return 'a GIF file';
  if (starts('RIFF') && starts('WEBP', 8)) return 'a WebP file';
  return 'neither PNG nor JPEG';
}

interface Header {
  width: number;
  height: number;
  /** Bytes of a row of pixels. */
  rowBytes: number;
  interlaced: boolean;
  chunks: PngChunk[];
}

/** Samples per pixel of each PNG colour type. */
const samples: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** Reads the header, and checks that the file ends with its last chunk and has one frame of at most 8 bits a sample. */
function readHeader(bytes: Buffer): Header {
  if (bytes.length < 33 || chunkType(bytes, 8) !== 'IHDR' || bytes.readUInt32BE(8) !== 13) throw damaged();
  const [width, height, depth] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20), bytes[24]];
  if (width === 0 || height === 0) throw damaged();
  checkPictureSize(width, height);
  if (depth > 8)
    throw new PictureError(`has ${depth} bits per channel, and only 8 are decoded: save the picture with 8 bits`);
  const chunks = chunksOf(bytes);
  if (chunks.some(({ type }) => type === 'acTL'))
    throw new PictureError('is an animated PNG file: send one PNG file per frame');
  return {
    width,
    height,
    rowBytes: Math.ceil((width * (samples[bytes[25]] ?? 4) * depth) / 8),
    interlaced: bytes[28] !== 0,
    chunks,
  };
}

const chunkType = (bytes: Buffer, at: number): string => bytes.toString('latin1', at + 4, at + 8);

/** Returns the chunks of a file, which ends with IEND. */
function chunksOf(bytes: Buffer): PngChunk[] {
  const chunks: PngChunk[] = [];
  for (let at = 8; at + 12 <= bytes.length;) {
    const size = bytes.readUInt32BE(at);
    if (at + 12 + size > bytes.length) break;
    const type = chunkType(bytes, at);
    const content = bytes.subarray(at + 4, at + 8 + size);
    chunks.push({ type, data: content.subarray(4), content, checksum: bytes.readUInt32BE(at + 8 + size) });
    at += 12 + size;
    if (type !== 'IEND') continue;
    if (at < bytes.length) break;
    return chunks;
  }
  throw damaged();
}

/** pngjs limits the decompressed size only of files that are not interlaced. */
function checkInflatedSize({ rowBytes, height, chunks }: Header): void {
  const data = chunks.flatMap(chunk => (chunk.type === 'IDAT' ? [chunk.data] : []));
  // The seven passes have at most two rows for each row of the picture: of its bytes, and one byte for their filter.
  const maxOutputLength = 2 * (rowBytes + 8) * height + 64;
  try {
    inflateSync(Buffer.concat(data), { maxOutputLength });
  } catch {
    throw damaged();
  }
}

/** Composites RGBA pixels onto white, rounding as Pillow does, and drops the alpha channel. */
function onWhite(rgba: Uint8Array): Uint8Array {
  const pixels = new Uint8Array((rgba.length / 4) * 3);
  for (let from = 0, to = 0; from < rgba.length; from += 4) {
    const alpha = rgba[from + 3];
    for (let channel = 0; channel < 3; channel++, to++) {
      const sum = 128 * (rgba[from + channel] * alpha + 255 * (255 - alpha)) + (128 << 7);
      pixels[to] = ((sum >> 8) + sum) >> 15;
    }
  }
  return pixels;
}
