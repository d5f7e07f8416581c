// A small seeded generator of uniform numbers, Mulberry32 (Tommy Ettinger), for pure functions: bootstrap samples, random
// forests and the tokens that Clip-Cov selects. Equal seeds give equal streams on every machine. The other streams of
// training are those of engine/sampling/random-stream.ts.

/** Returns a function that returns the next number in [0, 1) of the stream with this seed (an integer, modulo 2³²). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
