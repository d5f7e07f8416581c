// The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998) with its two seeding functions. CPython's `random` (here
// `PythonRandom`) seeds the generator with an array of words. numpy's legacy RandomState (here `NumpyLegacy`) seeds it
// with one word.
// No npm package is used, because this source is bundled into environments: the extension would have to ship the
// package.

const size = 624;
const middle = 397;

export class Mt19937 {
  private readonly words = new Int32Array(size);
  private next = size;

  /** Seeds with one 32-bit word (`init_genrand`). */
  seedByWord(seed: number): this {
    const { words } = this;
    words[0] = seed | 0;
    for (let i = 1; i < size; i++) {
      const previous = words[i - 1];
      words[i] = (Math.imul(1812433253, previous ^ (previous >>> 30)) + i) | 0;
    }
    this.next = size;
    return this;
  }

  /** Seeds with one or more 32-bit words (`init_by_array`). */
  seedByArray(key: readonly number[]): this {
    const { words } = this.seedByWord(19650218);
    let i = 1;
    for (let k = Math.max(size, key.length), j = 0; k > 0; k--) {
      const previous = words[i - 1];
      words[i] = ((words[i] ^ Math.imul(previous ^ (previous >>> 30), 1664525)) + key[j] + j) | 0;
      if (++i >= size) {
        words[0] = words[size - 1];
        i = 1;
      }
      if (++j >= key.length) j = 0;
    }
    for (let k = size - 1; k > 0; k--) {
      const previous = words[i - 1];
      words[i] = ((words[i] ^ Math.imul(previous ^ (previous >>> 30), 1566083941)) - i) | 0;
      if (++i >= size) {
        words[0] = words[size - 1];
        i = 1;
      }
    }
    words[0] = 0x80000000 | 0;
    return this;
  }

  /** Returns a uniform integer in [0, 2³²). */
  uint32(): number {
    if (this.next === size) this.twist();
    let word = this.words[this.next++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  /** Returns a uniform double in [0, 1) with 53 random bits; uses two 32-bit draws. */
  double(): number {
    const high = this.uint32() >>> 5;
    const low = this.uint32() >>> 6;
    return (high * 67108864 + low) / 9007199254740992;
  }

  private twist(): void {
    const { words } = this;
    for (let i = 0; i < size; i++) {
      const following = i + 1 < size ? words[i + 1] : words[0];
      const mixed = (words[i] & 0x80000000) | (following & 0x7fffffff);
      const far = i + middle < size ? words[i + middle] : words[i + middle - size];
      words[i] = far ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    }
    this.next = 0;
  }
}
