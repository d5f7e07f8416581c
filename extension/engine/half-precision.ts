// Converts F16 and BF16 to and from 32-bit floats. Widening is exact, since every F16 and BF16 value is an F32 value.
// Narrowing rounds to nearest, ties to even, like PyTorch and numpy. Works on bit patterns, because JavaScript has no
// typed array for BF16, and Node 20 has none for F16.

/** Writes the F32 values of BF16 bit patterns into `floats` from `offset` on. BF16 is the upper half of an F32. */
export function fromBrain(halves: Uint16Array, floats: Float32Array, offset: number): void {
  const bits = bitsOf(floats);
  for (let i = 0; i < halves.length; i++) bits[offset + i] = halves[i] << 16;
}

let halfTable: Uint32Array | undefined;

/** Writes the F32 values of F16 bit patterns into `floats` from `offset` on, using a table of all 65,536 values. */
export function fromHalf(halves: Uint16Array, floats: Float32Array, offset: number): void {
  halfTable ??= Uint32Array.from({ length: 1 << 16 }, (_, half) => singleBits(half));
  const bits = bitsOf(floats);
  for (let i = 0; i < halves.length; i++) bits[offset + i] = halfTable[halves[i]];
}

/** Returns the BF16 bit patterns of floats. Values beyond the range become infinite, NaN stays NaN. */
export function toBrain(floats: Float32Array): Uint16Array {
  const bits = bitsOf(floats);
  const halves = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) {
    const x = bits[i];
    // A NaN whose payload is only in the lower half would become infinity. One bit of the upper half is therefore set.
    halves[i] = (x & 0x7fffffff) > 0x7f800000 ? (x >>> 16) | 0x40 : (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
  }
  return halves;
}

/** Returns the F16 bit patterns of floats. Values beyond the range become infinite, NaN stays NaN. */
export function toHalf(floats: Float32Array): Uint16Array {
  const bits = bitsOf(floats);
  const halves = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) halves[i] = halfBits(bits[i]);
  return halves;
}

const bitsOf = (floats: Float32Array): Uint32Array => new Uint32Array(floats.buffer, floats.byteOffset, floats.length);

/** Returns the bits of the F32 that equals the F16 with the bits `half` (IEEE 754). NaN keeps its payload. */
function singleBits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 31) return sign | 0x7f800000 | (mantissa << 13);
  if (exponent > 0) return sign | ((exponent + 112) << 23) | (mantissa << 13);
  if (mantissa === 0) return sign;
  // Subnormal: shift until the leading one is at F32's implicit bit.
  const shift = Math.clz32(mantissa) - 21;
  return sign | ((113 - shift) << 23) | ((mantissa << (13 + shift)) & 0x7fffff);
}

/** Returns the bits of the F16 nearest to the F32 with the bits `single` (IEEE 754). */
function halfBits(single: number): number {
  const sign = (single >>> 16) & 0x8000;
  const magnitude = single & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x47800000) return sign | 0x7c00;
  // Normal numbers (from 2^-14 on): a carry out of the mantissa correctly increments the exponent, up to infinity.
  if (magnitude >= 0x38800000) return sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13);
  if (magnitude <= 0x33000000) return sign; // at most half of the smallest subnormal
  const shift = 126 - (magnitude >> 23);
  const mantissa = (magnitude & 0x7fffff) | 0x800000;
  const whole = mantissa >> shift;
  const rest = mantissa - (whole << shift);
  const tie = 1 << (shift - 1);
  return sign | (rest > tie || (rest === tie && (whole & 1) === 1) ? whole + 1 : whole);
}
