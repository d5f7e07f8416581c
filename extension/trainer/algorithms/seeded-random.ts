// A small seeded generator of uniform numbers, for shuffles that must come out the same on every machine.
// xoshiro128** (Blackman & Vigna, 2018), its 128-bit state filled from one 32-bit seed by splitmix32.
// Invariant: integer arithmetic only up to the last division, so that no platform can differ.

/** A stream of uniform numbers in [0, 1), each with 32 random bits. */
export type UniformStream = () => number;

/** The stream that belongs to `seed`; only the low 32 bits of the seed count. */
export function seededUniforms(seed: number): UniformStream {
  let mix = seed >>> 0;
  const nextWord = (): number => {
    mix = (mix + 0x9e3779b9) | 0;
    let word = mix ^ (mix >>> 16);
    word = Math.imul(word, 0x21f0aaad);
    word ^= word >>> 15;
    word = Math.imul(word, 0x735a2d97);
    return word ^ (word >>> 15);
  };
  let [a, b, c, d] = [nextWord(), nextWord(), nextWord(), nextWord()];
  return () => {
    const scrambled = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9);
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotateLeft(d, 11);
    return (scrambled >>> 0) / 4294967296;
  };
}

/** The numbers 0…count−1 in a random order (Fisher–Yates from the end). */
export function shuffledIndices(count: number, uniform: UniformStream): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const pick = Math.floor(uniform() * (last + 1));
    [order[last], order[pick]] = [order[pick], order[last]];
  }
  return order;
}

function rotateLeft(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
