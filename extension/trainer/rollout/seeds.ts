// Seeds of a rollout's random streams. A stream has a name and coordinates; its seed is a hash of the name and the
// coordinates. A turn's tokens therefore depend only on (base seed, step, env_id, turn), not on batch order, threads,
// or earlier draws.
// The hash is MurmurHash3 (Appleby, public domain), 32-bit x86 form: each UTF-16 unit of the name is one word; each
// number is two words, first its low 32 bits, then its high 32 bits. The length that is mixed into the hash at the end
// is the number of words, not of bytes.

/**
 * Returns the seed (unsigned 32-bit) of the stream `name` at `coordinates`; coordinates are integers of magnitude below
 * 2^53.
 */
export function deriveSeed(name: string, ...coordinates: number[]): number {
  let hash = 0;
  let words = 0;
  const mix = (word: number): void => {
    const scrambled = Math.imul(rotateLeft(Math.imul(word, 0xcc9e2d51), 15), 0x1b873593);
    hash = (Math.imul(rotateLeft(hash ^ scrambled, 13), 5) + 0xe6546b64) | 0;
    words++;
  };
  for (let index = 0; index < name.length; index++) mix(name.charCodeAt(index));
  for (const coordinate of coordinates) {
    if (!Number.isSafeInteger(coordinate)) throw new RangeError(`seed of ${name}: ${coordinate} is not a whole number`);
    mix(coordinate | 0);
    mix(Math.floor(coordinate / 2 ** 32) | 0);
  }
  hash ^= words;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function rotateLeft(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
