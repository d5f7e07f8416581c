// Installs Ray for its tests into .ray/, a virtual environment. Requires Python 3.10 to 3.13; where none is found, says
// so and ends with exit code 3.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { env, exit } from 'node:process';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
/** The virtual environment; RAGEN_RAY_FOLDER replaces it. */
export const folder = env.RAGEN_RAY_FOLDER ?? resolve(here, '../../.ray');
export const ray = join(folder, 'bin', 'ray');
const wanted = 'ray[default]==2.57.0';

/** Interpreters to try: on the PATH, and those of pyenv. */
function candidates() {
  const versions = join(homedir(), '.pyenv', 'versions');
  const own = existsSync(versions) ? readdirSync(versions).map(name => join(versions, name, 'bin', 'python')) : [];
  return ['python3.12', 'python3.13', 'python3.11', 'python3.10', 'python3', ...own];
}

const isUsable = command => {
  const { status, stdout } = spawnSync(command, ['-c', 'import sys, venv; print(sys.version_info[:2])'], {
    encoding: 'utf8',
  });
  return status === 0 && /\(3, 1[0-3]\)/.test(stdout);
};

/** Installs what is missing; returns false where there is no suitable Python. */
export function install() {
  const mark = join(folder, 'installed');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return true;
  const found = candidates().find(isUsable);
  if (found === undefined) return false;
  rmSync(folder, { recursive: true, force: true });
  const run = (command, ...args) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  run(found, '-m', 'venv', folder);
  run(join(folder, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', wanted);
  writeFileSync(mark, wanted);
  return true;
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !install()) {
  console.error('tests against a real Ray are left out: they need Python 3.10 to 3.13, which was not found');
  exit(3);
}
