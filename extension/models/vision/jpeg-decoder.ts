// Decodes JPEG files with MozJPEG, compiled to WebAssembly (@jsquash/jpeg). Its pixels are those of libjpeg-turbo, which
// Pillow uses. The header is read before anything is decoded: files that are too large, or not RGB or grey with 8 bits,
// are rejected.
import decode, { init } from '@jsquash/jpeg/decode';
import wasm from '@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm';
import { PictureError, checkPictureSize } from './picture';
import type { Picture } from './picture';

/** Whether the bytes begin like a JPEG file. */
export const isJpeg = (bytes: Buffer): boolean => bytes.length >= 3 && bytes.readUIntBE(0, 3) === 0xffd8ff;

const damaged = (): PictureError => new PictureError('is a damaged or truncated JPEG file: send the complete file');

let ready: Promise<void> | undefined;

/**
 * Returns the pixels of a JPEG file, upright according to its EXIF data.
 * @throws PictureError if the file is damaged or not supported
 */
export async function decodeJpeg(bytes: Buffer): Promise<Picture> {
  checkHeader(bytes);
  // The decoder writes warnings to the console unless it has other functions for them.
  ready ??= init({ wasmBinary: wasm, print: () => undefined, printErr: () => undefined });
  await ready;
  const { width, height, data } = await decode(Uint8Array.from(bytes).buffer, { preserveOrientation: true }).catch(
    () => {
      throw damaged();
    },
  );
  const pixels = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; to < pixels.length; from += 4, to += 3) {
    pixels[to] = data[from];
    pixels[to + 1] = data[from + 1];
    pixels[to + 2] = data[from + 2];
  }
  return { width, height, pixels };
}

/** Maximum number of scans. Each scan of a progressive file takes time in proportion to its pixels. */
const maxScans = 64;

/** Reads the segments up to the first scan, and checks that the file ends with its last one. */
function checkHeader(bytes: Buffer): void {
  let hasFrame = false;
  for (let at = 2; at + 4 <= bytes.length;) {
    if (bytes[at] !== 0xff) throw damaged();
    const marker = bytes[at + 1];
    if (marker === 0xff) {
      at++; // a fill byte
      continue;
    }
    if (marker === 0xda) {
      if (!hasFrame) throw damaged();
      checkScans(bytes.subarray(at));
      return;
    }
    // All markers from C0 to CF begin a frame, except Huffman tables, a reserved one and arithmetic conditioning.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      if (at + 10 > bytes.length) throw damaged();
      checkFrame(marker, bytes.subarray(at + 4));
      hasFrame = true;
    }
    at += 2 + Math.max(2, bytes.readUInt16BE(at + 2));
  }
  throw damaged();
}

/** `frame` begins with the number of bits per channel. */
function checkFrame(marker: number, frame: Buffer): void {
  const [bits, height, width, channels] = [frame[0], frame.readUInt16BE(1), frame.readUInt16BE(3), frame[5]];
  if (marker > 0xc2)
    throw new PictureError('is a lossless or arithmetic JPEG file: save the picture as PNG or baseline JPEG');
  if (bits !== 8)
    throw new PictureError(`has ${bits} bits per channel, and only 8 are decoded: save the picture with 8 bits`);
  if (channels !== 1 && channels !== 3)
    throw new PictureError(`has ${channels} colour channels (CMYK), and only RGB and grey are decoded: save it as RGB`);
  if (width === 0 || height === 0) throw damaged();
  checkPictureSize(width, height);
}

/** Checks the number of scans, and that the file has an end. Within a scan, no byte FF is followed by D9 or DA. */
function checkScans(scans: Buffer): void {
  let count = 0;
  for (let at = 0; (at = scans.indexOf('ffda', at, 'hex')) >= 0; at += 2) count++;
  if (count > maxScans)
    throw new PictureError(
      `has ${count} scans, and at most ${maxScans} are decoded: save the picture as baseline JPEG`,
    );
  if (scans.lastIndexOf('ffd9', undefined, 'hex') < 0) throw damaged();
}
