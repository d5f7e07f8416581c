// Builds the bundles once before the tests, because tests that start processes (CLI, trainer, engine worker,
// environment process) run the shipped bundles in dist/.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** Temporary folder that replaces the user's storage in all tests and in the processes that they start. */
let storage: string | undefined;

export function setup(): void {
  storage = mkdtempSync(join(tmpdir(), 'ragen-user-'));
  process.env.RAGEN_USER_STORAGE = storage;
  const codeCache = resolve(__dirname, 'support/code-cache.cjs');
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --require ${JSON.stringify(codeCache)}`.trim();
  rmSync(resolve(__dirname, '../node_modules/.cache/ragen-code'), { recursive: true, force: true });
  execFileSync(process.execPath, ['esbuild.mjs'], { cwd: resolve(__dirname, '..'), stdio: 'inherit' });
}

export function teardown(): void {
  if (storage !== undefined) rmSync(storage, { recursive: true, force: true });
}
