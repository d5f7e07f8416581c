// CPython's `random.Random`. Draws the same numbers as CPython, so RAGEN's Sokoban generator creates the same levels
// from the same seed; test/golden/envs/random.json holds CPython's values.
import { Mt19937 } from './mt19937';
import { seedWords } from './seed-words';

export class PythonRandom {
  private readonly generator = new Mt19937();

  /** Equivalent to `random.seed(seed)`; the seed is an integer in [0, 2⁵³). */
  constructor(seed: number) {
    this.generator.seedByArray(seedWords(seed));
  }

  /** Returns a uniform double in [0, 1). */
  random(): number {
    return this.generator.double();
  }

  /** Returns a uniform integer of the given number of bits, 1 to 53. */
  getrandbits(bits: number): number {
    if (bits <= 32) return this.generator.uint32() >>> (32 - bits);
    const low = this.generator.uint32();
    return (this.generator.uint32() >>> (64 - bits)) * 0x100000000 + low;
  }

  /** Returns a uniform integer in [0, n), by rejection sampling (`_randbelow`). */
  randbelow(n: number): number {
    if (!(n >= 1)) throw new RangeError(`randbelow of ${n}: the bound must be at least 1`);
    const bits = n < 0x80000000 ? 32 - Math.clz32(n) : Math.floor(Math.log2(n)) + 1;
    let drawn = this.getrandbits(bits);
    while (drawn >= n) drawn = this.getrandbits(bits);
    return drawn;
  }

  /** Returns a uniform integer in [low, high], both ends included. */
  randint(low: number, high: number): number {
    return low + this.randbelow(high - low + 1);
  }

  /** Returns a uniformly drawn element; `random.sample(items, 1)[0]` draws the same element. */
  choice<T>(items: readonly T[]): T {
    return items[this.randbelow(items.length)];
  }

  /** Shuffles in place. */
  shuffle<T>(items: T[]): void {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.randbelow(i + 1);
      const held = items[i];
      items[i] = items[j];
      items[j] = held;
    }
  }
}
