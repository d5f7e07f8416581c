// numpy's SeedSequence (after M. E. O'Neill's seed_seq): hashes a seed and the key of a child stream into the words
// that seed a generator. `SeedSequence(seed).spawn(n)[k]` has the key [k], so one seed yields many independent streams.
import { seedWords } from './seed-words';

const poolSize = 4;

/** `SeedSequence(seed, spawn_key=key).generate_state(count, uint32)`. */
export function seedSequence(seed: number, key: readonly number[], count: number): Uint32Array {
  const entropy = seedWords(seed);
  if (key.length > 0) while (entropy.length < poolSize) entropy.push(0);
  for (const part of key) for (const word of seedWords(part)) entropy.push(word);

  let constant = 0x43b0d7e5;
  const hash = (value: number) => {
    value ^= constant;
    constant = Math.imul(constant, 0x931e8875);
    value = Math.imul(value, constant);
    return value ^ (value >>> 16);
  };
  const mix = (x: number, y: number) => {
    const mixed = (Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y)) | 0;
    return mixed ^ (mixed >>> 16);
  };
  const pool = new Int32Array(poolSize);
  for (let i = 0; i < poolSize; i++) pool[i] = hash(i < entropy.length ? entropy[i] : 0);
  for (let from = 0; from < poolSize; from++)
    for (let to = 0; to < poolSize; to++) if (from !== to) pool[to] = mix(pool[to], hash(pool[from]));
  for (let from = poolSize; from < entropy.length; from++)
    for (let to = 0; to < poolSize; to++) pool[to] = mix(pool[to], hash(entropy[from]));

  const words = new Uint32Array(count);
  let output = 0x8b51f9dd;
  for (let i = 0; i < count; i++) {
    let word = pool[i % poolSize] ^ output;
    output = Math.imul(output, 0x58f38ded);
    word = Math.imul(word, output);
    words[i] = word ^ (word >>> 16);
  }
  return words;
}
