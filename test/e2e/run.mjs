// Runs the tests in a real VS Code: node test/e2e/run.mjs [names of specs]. Installs missing tools, packages the
// extension, and runs each spec in a separate process, three at a time because specs mostly wait. SKIP_PACKAGE=1 reuses
// the existing package. RAGEN_PART leaves out some specs (test/parts.mjs). PICTURES=1 tests all themes and saves the documentation's screenshots again.
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { argv, env, exit } from 'node:process';
import { leftOut } from '../parts.mjs';
import { installPackage, packageFile } from './editor.mjs';
import { install, root } from './install.mjs';

install();
if (!env.SKIP_PACKAGE && !env.UNPACKED) {
  const node = (...args) => execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  node('esbuild.mjs');
  node('package.mjs', `${process.platform}-${process.arch}`, packageFile, '--fast');
}
if (!env.UNPACKED) installPackage();
rmSync(join(root, 'test-results'), { recursive: true, force: true });
const folder = join(root, 'test', 'e2e', 'specs');
const wanted = argv.slice(2);
const unwanted = leftOut('specs').map(name => `${name}.spec.mjs`);
const specs = readdirSync(folder)
  .filter(name => name.endsWith('.spec.mjs'))
  .filter(name => (wanted.length === 0 ? !unwanted.includes(name) : wanted.some(part => name.includes(part))))
  .map(name => join(folder, name));
const { status } = spawnSync(process.execPath, ['--test', '--test-concurrency=3', '--test-reporter=spec', ...specs], {
  cwd: root,
  stdio: 'inherit',
});
exit(status ?? 1);
