// Installs the Python tools that read exported runs (pyarrow, Harbor, Weights & Biases, trackio) into .export-tools/.
// Requires Python 3.12 or 3.13; where none is found, says so and ends with exit code 3. requirements.txt lists what is
// imported; Harbor is installed without its dependencies, because only its models of trajectories are used, which need
// pydantic.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { installEnvironment } from '../support/python-environment.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const requirements = join(here, 'requirements.txt');
const folder = resolve(here, '../../.export-tools');
const packages = [['--no-deps', '--requirement', requirements]];
const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');

if (!installEnvironment({ folder, wanted, minors: [12, 13], packages })) {
  console.error(
    'tests with the readers of exported runs are left out: they need Python 3.12 or 3.13, which was not found',
  );
  exit(3);
}
