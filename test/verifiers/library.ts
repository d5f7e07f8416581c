// The virtual environment of the tests in this folder: where it is, and whether it is installed. Where it is required
// (RAGEN_REQUIRE_VERIFIERS) and missing, the import fails.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

const library = resolve(import.meta.dirname, '../../.verifiers');

/** The path of a program of the virtual environment. */
export const program = (name: string): string => join(library, 'bin', name);

export const installed = existsSync(join(library, 'installed'));
if (!installed && process.env.RAGEN_REQUIRE_VERIFIERS === '1')
  throw new Error('RAGEN_REQUIRE_VERIFIERS is set, but the library is missing: run node test/verifiers/install.mjs');

/** The environment variables of a Python process whose home is `folder`: nothing of the user's own settings and keys. */
export const variables = (folder: string): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: folder,
  PYTHONPATH: import.meta.dirname,
  PYTHONUTF8: '1',
});
