// Installs SkyRL's Tinker server for its tests into .tinker/: a virtual environment with the JAX backend and without
// torch. Requires Python 3.12 or 3.13; where none is found, says so and ends with exit code 3.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { installEnvironment } from '../support/python-environment.mjs';

const here = dirname(fileURLToPath(import.meta.url));
export const folder = resolve(here, '../../.tinker');
export const python = join(folder, 'bin', 'python');
const requirements = join(here, 'requirements.txt');
const skyrl = 'skyrl==0.3.0';

/** Installs what is missing; returns false where there is no suitable Python. */
export function install() {
  const wanted = createHash('sha256').update(readFileSync(requirements)).update(skyrl).digest('hex');
  const packages = [
    ['--requirement', requirements],
    ['--no-deps', skyrl],
  ];
  return installEnvironment({ folder, wanted, minors: [12, 13], packages });
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !install()) {
  console.error('tests against a real Tinker server are left out: they need Python 3.12 or 3.13, which was not found');
  exit(3);
}
