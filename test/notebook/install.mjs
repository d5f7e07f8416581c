// Installs pandas and Jupyter's notebook runner for the tests of notebooks into .notebook/. Requires Python 3.12 or 3.13;
// where none is found, says so and ends with exit code 3.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { installEnvironment } from '../support/python-environment.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const requirements = join(here, 'requirements.txt');
const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
const folder = resolve(here, '../../.notebook');

if (!installEnvironment({ folder, wanted, minors: [12, 13], packages: [['--requirement', requirements]] })) {
  console.error('tests of notebooks are left out: they need Python 3.12 or 3.13, which was not found');
  exit(3);
}
