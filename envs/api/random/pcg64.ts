// numpy's `Generator(PCG64(seed))`, which `gymnasium.utils.seeding.np_random(seed)` returns. Draws the same numbers as
// numpy; test/golden/envs/random.json holds numpy's values. The algorithm is PCG XSL RR 128/64 (O'Neill, 2014). Its
// 128-bit state is stored in four 32-bit limbs, least significant first, not in a BigInt.
// The npm package pcg is not used: it implements only the 32-bit generators, and it lacks numpy's seeding.
import { seedSequence } from './seed-sequence';

/** The limbs of PCG's default 128-bit multiplier. */
const m0 = 0x9fccf645;
const m1 = 0x4385df64;
const m2 = 0x1fc65da4;
const m3 = 0x2360ed05;
const word = 0x100000000;

/** Returns the upper 32 bits of the product of two 32-bit words. */
function mulHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const cross = aLow * bHigh;
  const other = aHigh * bLow;
  const carry = ((aLow * bLow) >>> 16) + (cross & 0xffff) + (other & 0xffff);
  return aHigh * bHigh + (cross >>> 16) + (other >>> 16) + (carry >>> 16);
}

export class Pcg64 {
  private s0 = 0;
  private s1 = 0;
  private s2 = 0;
  private s3 = 0;
  private readonly i0: number;
  private readonly i1: number;
  private readonly i2: number;
  private readonly i3: number;
  /** Upper and lower half of the latest 64-bit output. */
  private high = 0;
  private low = 0;
  /**
   * Upper half of the 64-bit output whose lower half `uint32` has returned. The next call of `uint32` returns this
   * upper half.
   */
  private spare = 0;
  private hasSpare = false;

  /** Seeds with an integer in [0, 2⁵³). `key` selects a child stream, like `SeedSequence.spawn`. */
  constructor(seed: number, key: readonly number[] = []) {
    const words = seedSequence(seed, key, 8);
    this.i0 = ((words[6] << 1) | 1) >>> 0;
    this.i1 = ((words[7] << 1) | (words[6] >>> 31)) >>> 0;
    this.i2 = ((words[4] << 1) | (words[7] >>> 31)) >>> 0;
    this.i3 = ((words[5] << 1) | (words[4] >>> 31)) >>> 0;
    this.advance();
    this.add(words[2], words[3], words[0], words[1]);
    this.advance();
  }

  /** Returns a uniform double in [0, 1) with 53 random bits. */
  random(): number {
    this.draw();
    return (this.high * 2097152 + (this.low >>> 11)) / 9007199254740992;
  }

  /** Returns a uniform integer in [0, 2³²). */
  uint32(): number {
    if (this.hasSpare) {
      this.hasSpare = false;
      return this.spare;
    }
    this.draw();
    this.spare = this.high;
    this.hasSpare = true;
    return this.low;
  }

  /**
   * Returns a uniform integer in [low, high) by Lemire's method; the range spans at most 2³² values. If the range has a
   * single value, no random number is drawn.
   */
  integers(low: number, high: number): number {
    const count = high - low;
    if (!(count >= 1 && count <= word))
      throw new RangeError(`integers from ${low} to ${high}: the range is empty or too wide`);
    if (count === 1) return low;
    if (count === word) return low + this.uint32();
    let drawn = this.uint32();
    let rest = Math.imul(drawn, count) >>> 0;
    if (rest < count) {
      const threshold = (word - count) % count;
      while (rest < threshold) {
        drawn = this.uint32();
        rest = Math.imul(drawn, count) >>> 0;
      }
    }
    return low + mulHigh(drawn, count);
  }

  /** Returns an index in [0, n): uniform, or with the probabilities `p` (length n, sum 1). */
  choice(n: number, p?: readonly number[]): number {
    if (!p) return this.integers(0, n);
    let total = 0;
    for (const share of p) total += share;
    const drawn = this.random();
    let sum = 0;
    for (let i = 0; i < n - 1; i++) if (drawn < (sum += p[i]) / total) return i;
    return n - 1;
  }

  private draw(): void {
    this.advance();
    const high = this.s3 ^ this.s1;
    const low = this.s2 ^ this.s0;
    const turn = this.s3 >>> 26;
    const from = turn < 32 ? high : low;
    const into = turn < 32 ? low : high;
    const shift = turn & 31;
    this.high = shift === 0 ? from >>> 0 : ((from >>> shift) | (into << (32 - shift))) >>> 0;
    this.low = shift === 0 ? into >>> 0 : ((into >>> shift) | (from << (32 - shift))) >>> 0;
  }

  /** Sets the state to state · multiplier + increment, modulo 2¹²⁸. */
  private advance(): void {
    const { s0, s1, s2, s3 } = this;
    const w1 = mulHigh(s0, m0) + (Math.imul(s1, m0) >>> 0) + (Math.imul(s0, m1) >>> 0);
    const w2 =
      mulHigh(s1, m0) +
      mulHigh(s0, m1) +
      (Math.imul(s2, m0) >>> 0) +
      (Math.imul(s1, m1) >>> 0) +
      (Math.imul(s0, m2) >>> 0) +
      Math.floor(w1 / word);
    const w3 =
      mulHigh(s2, m0) +
      mulHigh(s1, m1) +
      mulHigh(s0, m2) +
      (Math.imul(s3, m0) >>> 0) +
      (Math.imul(s2, m1) >>> 0) +
      (Math.imul(s1, m2) >>> 0) +
      (Math.imul(s0, m3) >>> 0) +
      Math.floor(w2 / word);
    this.s0 = Math.imul(s0, m0) >>> 0;
    this.s1 = w1 >>> 0;
    this.s2 = w2 >>> 0;
    this.s3 = w3 >>> 0;
    this.add(this.i0, this.i1, this.i2, this.i3);
  }

  private add(a0: number, a1: number, a2: number, a3: number): void {
    const w0 = this.s0 + a0;
    const w1 = this.s1 + a1 + (w0 >= word ? 1 : 0);
    const w2 = this.s2 + a2 + (w1 >= word ? 1 : 0);
    const w3 = this.s3 + a3 + (w2 >= word ? 1 : 0);
    this.s0 = w0 >>> 0;
    this.s1 = w1 >>> 0;
    this.s2 = w2 >>> 0;
    this.s3 = w3 >>> 0;
  }
}
