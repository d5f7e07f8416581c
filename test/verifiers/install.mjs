// Installs the verifiers library, OpenEnv's client and smolagents into .verifiers/. Requires Python 3.11 to 3.13; where
// none is found, says so and ends with exit code 3. requirements.txt lists what the environment server of verifiers, its
// `vf-eval`, the client and the agents import, in versions that `pip install verifiers[openenv]` chose; the rest, such as
// transformers and gradio, is for trainers and web pages, and is left out with --no-deps. fastmcp-slim is the code of
// fastmcp.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { installEnvironment } from '../support/python-environment.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const requirements = join(here, 'requirements.txt');
const folder = resolve(here, '../../.verifiers');
const packages = [['--no-deps', '--requirement', requirements]];
const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');

if (!installEnvironment({ folder, wanted, minors: [12, 13, 11], packages })) {
  console.error('tests with the verifiers library are left out: they need Python 3.11 to 3.13, which was not found');
  exit(3);
}
