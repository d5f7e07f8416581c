// Splits a seed into the 32-bit words that seed a generator, least significant first.

/**
 * Returns the 32-bit words of a seed: one if the seed is below 2³², otherwise two.
 * @throws RangeError if the seed is not an integer in [0, 2⁵³)
 */
export function seedWords(seed: number): number[] {
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new RangeError(`a random stream's seed is ${seed}: give an integer from 0 to 2^53 - 1`);
  const high = Math.floor(seed / 0x100000000);
  return high === 0 ? [seed] : [seed >>> 0, high];
}
