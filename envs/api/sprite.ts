// Images of which pictures of states are composed (`Drawing.image`), read from PNG files. Scaling gives the pixels of
// `pygame.transform.scale` (pygame 2.6). Images that were read are kept, because the episodes of a thread share them.
import { PNG } from 'pngjs';
import { MissingDependency } from './environment';
import { readRegularBytes } from './regular-file';

export interface Sprite {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue and alpha of each pixel, row by row, 0 to 255. */
  readonly data: Uint8Array;
}

/** Maximum bytes of an image's file. */
const mostBytes = 2 ** 20;
/** Maximum pixels of an image. */
const mostPixels = 2 ** 20;
const read = new Map<string, Sprite>();

/**
 * Returns the image of a PNG file. The file is read once per process.
 * @param remedy how to get the file, as an imperative
 * @throws MissingDependency if the file cannot be read as PNG
 */
export function readSprite(path: string, remedy: string): Sprite {
  const known = read.get(path);
  if (known) return known;
  let bytes: Buffer;
  try {
    bytes = readRegularBytes(path, mostBytes);
  } catch (error) {
    throw new MissingDependency(`cannot read the image ${path} (${(error as Error).message})`, remedy);
  }
  // Width and height are at the same place in each PNG file; a small file may claim gigabytes.
  const pixels = bytes.length < 24 ? 0 : bytes.readUInt32BE(16) * bytes.readUInt32BE(20);
  if (pixels > mostPixels)
    throw new MissingDependency(`the image ${path} has ${pixels} pixels, more than ${mostPixels}`, remedy);
  let sprite: Sprite;
  try {
    sprite = PNG.sync.read(bytes);
  } catch (error) {
    throw new MissingDependency(`${path} is not a PNG image (${(error as Error).message})`, remedy);
  }
  read.set(path, sprite);
  return sprite;
}

/** Returns an image of another size; each pixel is one pixel of the given image. */
export function scaled(sprite: Sprite, toWidth: number, toHeight: number): Sprite {
  const { width, height, data } = sprite;
  if (width === toWidth && height === toHeight) return sprite;
  const to = new Uint8Array(4 * toWidth * toHeight);
  for (let y = 0, at = 0; y < toHeight; y++)
    for (let x = 0; x < toWidth; x++, at += 4) {
      const from = 4 * (Math.floor((y * height) / toHeight) * width + Math.floor((x * width) / toWidth));
      to.set(data.subarray(from, from + 4), at);
    }
  return { width: toWidth, height: toHeight, data: to };
}
