// Builds the bundles once before the tests: what starts processes (terminal, trainer, engine worker, environment process) is tested
// as it is shipped, from dist/.
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

export function setup(): void {
  execFileSync(process.execPath, ['esbuild.mjs'], { cwd: resolve(__dirname, '..'), stdio: 'inherit' });
}
