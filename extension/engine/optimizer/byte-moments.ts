// 8-bit AdamW moments, in blocks of 256 with one scale per block (Dettmers et al. 2022, arXiv 2110.02861). The first
// moment is decoded as the signed square of its byte, the second moment as the fourth power of its byte. Values far
// below the block's maximum are therefore preserved. Rounding is dithered: the closer a value is to the higher of its
// two neighbouring levels, the more often it is rounded up. Plain rounding would never change a value that decays by
// less than half a level per step. The dither depends only on the step number, so a resumed run rounds exactly like an
// uninterrupted run. A nonzero second moment is never rounded to zero, because steps are divided by its square root.
import type { Graph, Value } from '../graph/graph';
import { binary, reduced, unary } from '../graph/ops';
import { float32 } from '../session/session';
import type { Tensor } from '../session/session';

/** Number of values in a block; each block has one scale. */
export const blockSize = 256;

/** Bytes [blocks, 256] and the scale of each block [blocks, 1]. */
export interface Bytes {
  bytes: Value;
  scale: Value;
}

/** Lower bound of a block's scale: the smallest normal float32, so that no division is by zero. */
const smallest = 2 ** -126;
const firstLevels = 127;
const secondLevels = 255;

/** Decodes first moments from int8: scale · sign · (byte / 127)². */
export function firstFromBytes(g: Graph, { bytes, scale }: Bytes): Value {
  const share = binary(g, 'Div', toFloats(g, bytes), g.scalar(firstLevels));
  return binary(g, 'Mul', binary(g, 'Mul', share, unary(g, 'Abs', share)), scale);
}

/** Decodes second moments from uint8: scale · (byte / 255)⁴. */
export function secondFromBytes(g: Graph, { bytes, scale }: Bytes): Value {
  const share = binary(g, 'Div', toFloats(g, bytes), g.scalar(secondLevels));
  return binary(g, 'Mul', square(g, square(g, share)), scale);
}

/** Encodes first moments [blocks, 256] as int8; each value of `dither` [1, 256] is between 0 and 1. */
export function firstToBytes(g: Graph, m: Value, dither: Value): Bytes {
  const size = unary(g, 'Abs', m);
  const scale = reduced(g, 'ReduceMax', size, [1]);
  const share = shareOf(g, size, scale);
  const level = binary(g, 'Mul', unary(g, 'Sqrt', share), g.scalar(firstLevels));
  const under = unary(g, 'Floor', level);
  // Position between the levels k² and (k + 1)².
  const above = binary(g, 'Sub', binary(g, 'Mul', share, g.scalar(firstLevels ** 2)), square(g, under));
  const gap = binary(g, 'Add', binary(g, 'Add', under, under), g.scalar(1));
  const rounded = roundedUp(g, under, binary(g, 'Div', above, gap), dither);
  const signed = binary(g, 'Mul', rounded, unary(g, 'Sign', m));
  return { bytes: g.emit('Cast', [signed], 'int8', m.dims, { to: 3 }), scale };
}

/** Encodes non-negative second moments [blocks, 256] as uint8. */
export function secondToBytes(g: Graph, v: Value, dither: Value): Bytes {
  const scale = reduced(g, 'ReduceMax', v, [1]);
  const share = shareOf(g, v, scale);
  const level = binary(g, 'Mul', unary(g, 'Sqrt', unary(g, 'Sqrt', share)), g.scalar(secondLevels));
  const under = unary(g, 'Floor', level);
  // Position between the levels k⁴ and (k + 1)⁴.
  const low = square(g, square(g, under));
  const high = square(g, square(g, binary(g, 'Add', under, g.scalar(1))));
  const above = binary(g, 'Sub', binary(g, 'Mul', share, g.scalar(secondLevels ** 4)), low);
  const rounded = roundedUp(g, under, binary(g, 'Div', above, binary(g, 'Sub', high, low)), dither);
  const notZero = binary(g, 'Min', unary(g, 'Ceil', level), g.scalar(1));
  return { bytes: g.emit('Cast', [binary(g, 'Max', rounded, notZero)], 'uint8', v.dims, { to: 2 }), scale };
}

/**
 * Returns the dithers `first_dither` and `second_dither` of step `t`: the fractional parts of multiples of two
 * irrational numbers. Over many steps, these fractions are uniformly distributed for every element of a block (Weyl). A
 * small margin around 0 and 1 prevents rounding errors from changing values that are exactly on a level.
 */
export function ditherFeeds(t: number): Record<'first_dither' | 'second_dither', Tensor> {
  const margin = 1 / 512;
  const sequence = (step: number): Tensor =>
    float32(
      Float32Array.from({ length: blockSize }, (_, i) => margin + (1 - 2 * margin) * (((i + t) * step) % 1)),
      [1, blockSize],
    );
  return { first_dither: sequence((Math.sqrt(5) - 1) / 2), second_dither: sequence(Math.SQRT2) };
}

const square = (g: Graph, x: Value): Value => binary(g, 'Mul', x, x);

const toFloats = (g: Graph, bytes: Value): Value => g.emit('Cast', [bytes], 'float32', bytes.dims, { to: 1 });

function shareOf(g: Graph, size: Value, scale: Value): Value {
  return binary(g, 'Div', size, binary(g, 'Max', scale, g.scalar(smallest)));
}

/**
 * Returns `under` + 1 if `share` + `dither` ≥ 1, else `under`. `share` (0…1) is the position between the two levels.
 */
function roundedUp(g: Graph, under: Value, share: Value, dither: Value): Value {
  return binary(g, 'Add', under, unary(g, 'Floor', binary(g, 'Add', share, dither)));
}
