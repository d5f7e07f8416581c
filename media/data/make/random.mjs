// Seeded random numbers and file output for the scripts that generate the shipped data sets. Equal seeds produce equal
// files on every machine.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

/** Functions that draw from one seeded generator (mulberry32). */
export function stream(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = n => Math.floor(uniform() * n);
  const pick = list => list[below(list.length)];
  const shuffled = list => {
    const out = [...list];
    for (let i = out.length - 1; i > 0; i--) {
      const j = below(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  };
  return { uniform, below, between: (a, b) => a + below(b - a + 1), pick, shuffled };
}

/** Rows as JSON Lines. */
export const lines = rows => rows.map(row => `${JSON.stringify(row)}\n`).join('');

/**
 * Writes the files (text by path) into the parent of the scripts' folder, or into the folder given on the command line.
 */
export function writeData(files) {
  const folder = argv[2] ? resolve(argv[2]) : join(dirname(fileURLToPath(import.meta.url)), '..');
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
