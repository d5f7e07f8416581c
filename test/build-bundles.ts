// Builds the bundles once before the tests: what starts processes (terminal, trainer, engine worker, environment
// process) is tested as it is shipped, from dist/.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** What stands for the user's own storage, in all tests and what they start. */
let storage: string | undefined;

export function setup(): void {
  storage = mkdtempSync(join(tmpdir(), 'ragen-user-'));
  process.env.RAGEN_USER_STORAGE = storage;
  execFileSync(process.execPath, ['esbuild.mjs'], { cwd: resolve(__dirname, '..'), stdio: 'inherit' });
}

export function teardown(): void {
  if (storage !== undefined) rmSync(storage, { recursive: true, force: true });
}
