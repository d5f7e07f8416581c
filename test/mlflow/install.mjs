// Installs an MLflow tracking server for its tests into .mlflow/. Requires Python 3.12 or 3.13; where none is found, says
// so and ends with exit code 3. requirements.txt lists what the server needs; MLflow itself is installed without its
// dependencies, because the packages for machine learning among them are large and the server does not import them.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { installEnvironment } from '../support/python-environment.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const requirements = join(here, 'requirements.txt');
const folder = resolve(here, '../../.mlflow');
const packages = [['--no-deps', '--requirement', requirements]];
const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');

if (!installEnvironment({ folder, wanted, minors: [12, 13], packages })) {
  console.error('tests of MLflow are left out: they need Python 3.12 or 3.13, which was not found');
  exit(3);
}
