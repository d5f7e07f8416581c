// Installs Ray for its tests into .ray/, a virtual environment. Requires Python 3.10 to 3.13; where none is found, says
// so and ends with exit code 3.
import { dirname, join, resolve } from 'node:path';
import { env, exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { installEnvironment } from '../support/python-environment.mjs';

const here = dirname(fileURLToPath(import.meta.url));
/** The virtual environment; RAGEN_RAY_FOLDER replaces it. */
export const folder = env.RAGEN_RAY_FOLDER ?? resolve(here, '../../.ray');
export const ray = join(folder, 'bin', 'ray');
const wanted = 'ray[default]==2.57.0';

/** Installs what is missing; returns false where there is no suitable Python. */
export const install = () => installEnvironment({ folder, wanted, minors: [12, 13, 11, 10], packages: [[wanted]] });

if (process.argv[1] === fileURLToPath(import.meta.url) && !install()) {
  console.error('tests against a real Ray are left out: they need Python 3.10 to 3.13, which was not found');
  exit(3);
}
