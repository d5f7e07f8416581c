// Resizes pictures as transformers' default image processors do: torchvision's antialiased resize of 8-bit pixels on
// the CPU (torch, UpSampleKernel.cpp), first along rows, then along columns, each with 16-bit weights and a result
// rounded to 8 bits. Pillow uses the same filters with 22-bit weights, so its pixels can differ by 1.
import type { Picture } from './picture';

export type Filter = 'bilinear' | 'bicubic' | 'lanczos';

const lanczosLobes = 3;
const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

const filters: Readonly<Record<Filter, { support: number; weight: (x: number) => number }>> = {
  bilinear: { support: 1, weight: x => Math.max(0, 1 - Math.abs(x)) },
  bicubic: { support: 2, weight: cubic },
  lanczos: {
    support: lanczosLobes,
    weight: x => (Math.abs(x) < lanczosLobes ? sinc(x) * sinc(x / lanczosLobes) : 0),
  },
};

/** Cubic convolution with a = −0.5 (Keys, 1981). */
function cubic(signed: number): number {
  const a = -0.5;
  const x = Math.abs(signed);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

/** Returns the picture with another size. */
export function resize(picture: Picture, width: number, height: number, filter: Filter): Picture {
  const wide = width === picture.width ? picture : resizeRows(picture, width, filter);
  return height === picture.height ? wide : resizeColumns(wide, height, filter);
}

/** Weights of the input pixels of each output pixel along one axis, as integers in units of 2^−precision. */
interface Weights {
  /** First input pixel and number of input pixels for each output pixel. */
  starts: Int32Array;
  counts: Int32Array;
  /** [outputs, stride] */
  values: Int32Array;
  stride: number;
  precision: number;
}

function weightsOf(from: number, to: number, filter: Filter): Weights {
  const { support, weight } = filters[filter];
  const scale = from / to;
  const stretch = Math.max(1, scale);
  const radius = support * stretch;
  const stride = Math.ceil(radius) * 2 + 1;
  const exact = new Float64Array(to * stride);
  const starts = new Int32Array(to);
  const counts = new Int32Array(to);
  let largest = 0;
  for (let i = 0; i < to; i++) {
    const center = scale * (i + 0.5);
    const start = Math.max(0, Math.trunc(center - radius + 0.5));
    const count = Math.min(stride, Math.min(from, Math.trunc(center + radius + 0.5)) - start);
    const row = exact.subarray(i * stride, i * stride + count);
    let sum = 0;
    for (let j = 0; j < count; j++) {
      row[j] = weight((j + start - center + 0.5) * (1 / stretch));
      sum += row[j];
    }
    for (let j = 0; j < count; j++) {
      row[j] /= sum;
      largest = Math.max(largest, row[j]);
    }
    [starts[i], counts[i]] = [start, count];
  }
  // The largest precision with which every weight is a 16-bit integer.
  let precision = 0;
  while (precision < 22 && Math.trunc(0.5 + largest * 2 ** (precision + 1)) < 2 ** 15) precision++;
  const unit = 2 ** precision;
  const values = Int32Array.from(exact, x => Math.trunc(x * unit + (x < 0 ? -0.5 : 0.5)));
  return { starts, counts, values, stride, precision };
}

function resizeRows({ width: from, height, pixels }: Picture, width: number, filter: Filter): Picture {
  const { starts, counts, values, stride, precision } = weightsOf(from, width, filter);
  const result = new Uint8ClampedArray(width * height * 3);
  const half = 1 << (precision - 1);
  for (let y = 0, to = 0; y < height; y++)
    for (let x = 0; x < width; x++, to += 3) {
      let [red, green, blue] = [half, half, half];
      const first = x * stride;
      for (let j = 0, at = (y * from + starts[x]) * 3; j < counts[x]; j++, at += 3) {
        const weight = values[first + j];
        red += pixels[at] * weight;
        green += pixels[at + 1] * weight;
        blue += pixels[at + 2] * weight;
      }
      result[to] = red >> precision;
      result[to + 1] = green >> precision;
      result[to + 2] = blue >> precision;
    }
  return { width, height, pixels: new Uint8Array(result.buffer) };
}

function resizeColumns({ width, height: from, pixels }: Picture, height: number, filter: Filter): Picture {
  const { starts, counts, values, stride, precision } = weightsOf(from, height, filter);
  const row = width * 3;
  const result = new Uint8ClampedArray(row * height);
  const sums = new Int32Array(row);
  for (let y = 0; y < height; y++) {
    sums.fill(1 << (precision - 1));
    for (let j = 0; j < counts[y]; j++) {
      const weight = values[y * stride + j];
      const at = (starts[y] + j) * row;
      for (let x = 0; x < row; x++) sums[x] += pixels[at + x] * weight;
    }
    for (let x = 0; x < row; x++) result[y * row + x] = sums[x] >> precision;
  }
  return { width, height, pixels: new Uint8Array(result.buffer) };
}
