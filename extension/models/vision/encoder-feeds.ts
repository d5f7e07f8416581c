// Feeds of the vision encoders for several pictures. Blocks of attention are padded to the longest
// block; a dummy square of patches fills their empty slots, and no image feature depends on it.
import { maximum } from '../../common/lists';
import { masked } from '../../engine/session/padding';
import { float32, int32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import { rotaryFrequencies } from '../decoder/rotary-frequencies';
import { headIndex } from '../graphs/head-index';
import type { PatchGrid, PicturePatches } from './patches';
import { patchWidth } from './encoder-shape';
import type { EncoderConfig } from './encoder-config';
import type { EncoderShape } from './encoder-shape';
import type { QwenEncoderConfig } from './qwen-encoder-config';
import type { Qwen3EncoderConfig } from './qwen3-encoder-config';
import type { SiglipConfig } from './siglip-config';

export interface EncoderFeeds {
  feeds: Record<string, Tensor>;
  /** Number of image features of each picture; the features of a picture are consecutive and in its rows' order. */
  counts: number[];
}

/** Returns the number of image features of a picture. */
export const featureCount = ({ rows, columns }: PatchGrid, { mergeSize }: Pick<EncoderShape, 'mergeSize'>): number =>
  (rows * columns) / mergeSize ** 2;

/** Returns the feeds that encode the pictures, in their order. */
export function encoderFeeds(c: EncoderConfig, pictures: readonly PicturePatches[]): EncoderFeeds {
  const { total, feeds } = cachedLayout(c, pictures);
  const width = patchWidth(c);
  const patches = asOneArray(pictures, total * width) ?? copied(pictures, total * width);
  return {
    feeds: { patches: float32(patches, [total, width]), ...feeds },
    counts: pictures.map(picture => featureCount(picture, c)),
  };
}

/** Returns the patches of pictures that follow each other in one buffer; undefined if they do not, or are not `length`. */
function asOneArray(pictures: readonly PicturePatches[], length: number): Float32Array | undefined {
  const [{ values: first }] = pictures;
  let end = first.byteOffset;
  for (const { values } of pictures) {
    if (values.buffer !== first.buffer || values.byteOffset !== end) return undefined;
    end += values.byteLength;
  }
  const found = (end - first.byteOffset) / first.BYTES_PER_ELEMENT;
  return found === length ? new Float32Array(first.buffer, first.byteOffset, length) : undefined;
}

/** Returns the patches of pictures one after the other, filled with zeros to `length`. */
function copied(pictures: readonly PicturePatches[], length: number): Float32Array {
  const patches = new Float32Array(length);
  let at = 0;
  for (const { values } of pictures) {
    patches.set(values, at);
    at += values.length;
  }
  return patches;
}

/** Feeds that depend only on the numbers of patches of the pictures. */
interface PatchLayout {
  /** Number of patches, with the dummy square. */
  total: number;
  feeds: Record<string, Tensor>;
}

/** Maximum number of kept layouts of an encoder; the one that was not used for longest is dropped. */
const mostLayouts = 16;
/** Largest layout that is kept, in patches. */
const mostPatches = 4096;
const layouts = new WeakMap<EncoderConfig, Map<string, PatchLayout>>();

/** Returns the layout of pictures; that of small pictures is kept, because the pictures of an environment have equal sizes. */
function cachedLayout(c: EncoderConfig, pictures: readonly PatchGrid[]): PatchLayout {
  let kept = layouts.get(c);
  if (!kept) layouts.set(c, (kept = new Map<string, PatchLayout>()));
  const key = pictures.map(({ rows, columns }) => `${rows}×${columns}`).join();
  const layout = kept.get(key) ?? computeLayout(c, pictures);
  if (layout.total > mostPatches) return layout;
  kept.delete(key);
  kept.set(key, layout);
  if (kept.size > mostLayouts) kept.delete(kept.keys().next().value!);
  return layout;
}

function computeLayout(c: EncoderConfig, pictures: readonly PatchGrid[]): PatchLayout {
  const unit = c.mergeSize ** 2;
  const blocks: Record<'window' | 'picture', number[][]> = { window: [], picture: [] };
  let count = 0;
  for (const picture of pictures) {
    const ofSquares = (squares: readonly number[]): number[] =>
      squares.flatMap(square => Array.from({ length: unit }, (_, i) => count + square * unit + i));
    if (c.kind === 'qwen2_5_vl') for (const window of windowsOf(picture, c)) blocks.window.push(ofSquares(window));
    blocks.picture.push(ofSquares([...Array(featureCount(picture, c)).keys()]));
    count += picture.rows * picture.columns;
  }
  const padded = Object.values(blocks).some(of => of.some(({ length }) => length < longest(of)));
  const total = count + (padded ? unit : 0);
  return {
    total,
    feeds: {
      ...(c.kind === 'siglip'
        ? { patch_positions: positionFeed(c, pictures, total) }
        : rotationFeeds(c, pictures, total)),
      ...(c.kind === 'qwen3_vl' && tapFeeds(c, pictures, total)),
      ...(c.kind === 'qwen2_5_vl' && blockFeeds('window', blocks.window, total, count, c.heads)),
      ...blockFeeds('picture', blocks.picture, total, count, c.heads),
    },
  };
}

const longest = (blocks: readonly number[][]): number => maximum(blocks.map(({ length }) => length));

/** Returns the merged squares of each window of a picture; windows at the right and bottom edges may be smaller. */
function windowsOf({ rows, columns }: PatchGrid, { mergeSize, windowSide }: QwenEncoderConfig): number[][] {
  const [height, width] = [rows / mergeSize, columns / mergeSize];
  const windows: number[][] = [];
  for (let top = 0; top < height; top += windowSide)
    for (let left = 0; left < width; left += windowSide) {
      const window: number[] = [];
      for (let row = top; row < Math.min(height, top + windowSide); row++)
        for (let column = left; column < Math.min(width, left + windowSide); column++)
          window.push(row * width + column);
      windows.push(window);
    }
  return windows;
}

/** Calls `visit` with row and column of each patch and its picture, in the order of the patches. */
function eachPatch(
  pictures: readonly PatchGrid[],
  { mergeSize }: Pick<EncoderShape, 'mergeSize'>,
  visit: (row: number, column: number, patch: number, picture: PatchGrid) => void,
): void {
  let patch = 0;
  for (const picture of pictures)
    for (let top = 0; top < picture.rows; top += mergeSize)
      for (let left = 0; left < picture.columns; left += mergeSize)
        for (let row = top; row < top + mergeSize; row++)
          for (let column = left; column < left + mergeSize; column++) visit(row, column, patch++, picture);
}

/** Angles of each patch: the first half of the frequencies rotate by its row, the second half by its column. */
function rotationFeeds(
  c: QwenEncoderConfig | Qwen3EncoderConfig,
  pictures: readonly PatchGrid[],
  total: number,
): Record<string, Tensor> {
  const shape = { headSize: c.headSize / 2, ropeTheta: c.ropeTheta, ropeScaling: { rope_type: 'default' } } as const;
  const { inverse } = rotaryFrequencies(shape);
  const half = c.headSize / 2;
  const angles = new Float32Array(total * half);
  eachPatch(pictures, c, (row, column, patch) =>
    inverse.forEach((x, i) => {
      angles[patch * half + i] = row * x;
      angles[patch * half + inverse.length + i] = column * x;
    }),
  );
  const patchRows = BigInt64Array.from({ length: total }, (_, i) => BigInt(i));
  return {
    patch_rows: int64(patchRows, [total, 1]),
    patch_cos: float32(angles.map(Math.cos), [total, half]),
    patch_sin: float32(angles.map(Math.sin), [total, half]),
  };
}

/**
 * Row of each patch in the table of learned positions. transformers computes it from fractions of the tile's side, which
 * gives the same rows for the sides of published models (26, 27 and 32 patches); for some other sides, such as 19 and 25,
 * its rounding repeats rows, in a way that depends on the processor.
 */
function positionFeed({ side, mergeSize }: SiglipConfig, pictures: readonly PatchGrid[], total: number): Tensor {
  const positions = new BigInt64Array(total);
  eachPatch(pictures, { mergeSize }, (row, column, patch) => (positions[patch] = BigInt(row * side + column)));
  return int64(positions, [total]);
}

/**
 * The four learned positions around each patch, and their weights: the table is resized to the picture's grid by bilinear
 * interpolation, corner to corner.
 */
function tapFeeds(c: Qwen3EncoderConfig, pictures: readonly PatchGrid[], total: number): Record<string, Tensor> {
  const taps = new BigInt64Array(total * 4);
  const weights = new Float32Array(total * 4);
  const along = (index: number, size: number): { tap: number; weight: number }[] => {
    const at = Math.fround((index * (c.side - 1)) / Math.max(1, size - 1));
    const low = Math.floor(at);
    return [low, low + 1].map(tap => ({ tap: Math.min(tap, c.side - 1), weight: 1 - Math.abs(at - tap) }));
  };
  eachPatch(pictures, c, (row, column, patch, { rows, columns }) => {
    along(row, rows).forEach((vertical, i) =>
      along(column, columns).forEach((horizontal, j) => {
        const to = patch * 4 + i * 2 + j;
        taps[to] = BigInt(vertical.tap * c.side + horizontal.tap);
        weights[to] = vertical.weight * horizontal.weight;
      }),
    );
  });
  return { position_taps: int64(taps, [total, 4]), position_weights: float32(weights, [total, 1, 4]) };
}

/** Feeds of one kind of attention block. The patches from `dummy` to `total` fill empty slots. */
function blockFeeds(
  name: string,
  blocks: readonly number[][],
  total: number,
  dummy: number,
  heads: number,
): Record<string, Tensor> {
  const isFull = blocks.every(block => block.length === longest(blocks));
  // The dummy patches need an empty slot: their gradient is that of their slot, which must be zero.
  const length = longest(blocks) + Number(isFull && dummy < total);
  const places = new Int32Array(blocks.length * length).fill(-1);
  const mask = new Float32Array(places.length).fill(masked);
  blocks.forEach((block, i) => {
    places.set(block, i * length);
    mask.fill(0, i * length, i * length + block.length);
  });
  const layout = { places, outer: blocks.length, inner: 1, length };
  const { forward, back } = headIndex([layout], total, dummy, heads, 1);
  for (let patch = dummy + 1; patch < total; patch++)
    back.copyWithin(patch * heads, dummy * heads, (dummy + 1) * heads);
  return {
    [`${name}_rows`]: int32(forward[0], [blocks.length, heads, length]),
    [`${name}_places`]: int32(back, [total * heads]),
    [`${name}_mask`]: float32(mask, [blocks.length, 1, 1, length]),
  };
}
