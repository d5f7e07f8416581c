// numpy's legacy global generator, the class RandomState (`np.random.seed`, `np.random.randint`, …). Draws the same
// numbers as numpy; test/golden/envs/random.json holds numpy's values.
import { Mt19937 } from './mt19937';

export class NumpyLegacy {
  private readonly generator = new Mt19937();

  /** Equivalent to `np.random.seed(seed)`; the seed is an integer in [0, 2³²). */
  constructor(seed: number) {
    if (!Number.isInteger(seed) || seed < 0 || seed > 0xffffffff)
      throw new RangeError(`a numpy stream's seed is ${seed}: give an integer from 0 to 2^32 - 1`);
    this.generator.seedByWord(seed);
  }

  /** Returns a uniform double in [0, 1) (`random_sample`). */
  random(): number {
    return this.generator.double();
  }

  /**
   * Returns a uniform integer in [low, high) by masked rejection; the range spans at most 2³² values. If the range has
   * a single value, no random number is drawn.
   */
  randint(low: number, high: number): number {
    const last = high - 1 - low;
    if (!(last >= 0 && last <= 0xffffffff))
      throw new RangeError(`randint from ${low} to ${high}: the range is empty or too wide`);
    if (last === 0) return low;
    const mask = 0xffffffff >>> Math.clz32(last);
    let drawn = (this.generator.uint32() & mask) >>> 0;
    while (drawn > last) drawn = (this.generator.uint32() & mask) >>> 0;
    return low + drawn;
  }

  /** Returns an index in [0, n): uniform, or with the probabilities `p` (length n, sum 1). */
  choice(n: number, p?: readonly number[]): number {
    if (!p) return this.randint(0, n);
    let total = 0;
    for (const share of p) total += share;
    const drawn = this.random();
    let sum = 0;
    for (let i = 0; i < n - 1; i++) if (drawn < (sum += p[i]) / total) return i;
    return n - 1;
  }
}
