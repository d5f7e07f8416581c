// Installs SkyRL's Tinker server for its tests into .tinker/: a virtual environment with the JAX backend and without
// torch. Requires Python 3.12 or 3.13; where none is found, says so and ends with exit code 3.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { exit } from 'node:process';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
export const folder = resolve(here, '../../.tinker');
export const python = join(folder, 'bin', 'python');
const requirements = join(here, 'requirements.txt');
const skyrl = 'skyrl==0.3.0';

/** Interpreters to try: on the PATH, and those of pyenv. */
function candidates() {
  const versions = join(homedir(), '.pyenv', 'versions');
  const own = existsSync(versions) ? readdirSync(versions).map(name => join(versions, name, 'bin', 'python')) : [];
  return ['python3.12', 'python3.13', 'python3', ...own];
}

const isUsable = command => {
  const { status, stdout } = spawnSync(command, ['-c', 'import sys, venv; print(sys.version_info[:2])'], {
    encoding: 'utf8',
  });
  return status === 0 && /\(3, 1[23]\)/.test(stdout);
};

/** Installs what is missing; returns false where there is no suitable Python. */
export function install() {
  const wanted = createHash('sha256').update(readFileSync(requirements)).update(skyrl).digest('hex');
  const mark = join(folder, 'installed');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return true;
  const found = candidates().find(isUsable);
  if (found === undefined) return false;
  rmSync(folder, { recursive: true, force: true });
  const run = (command, ...args) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  run(found, '-m', 'venv', folder);
  run(python, '-m', 'pip', 'install', '--quiet', '--requirement', requirements);
  run(python, '-m', 'pip', 'install', '--quiet', '--no-deps', skyrl);
  writeFileSync(mark, wanted);
  return true;
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !install()) {
  console.error('tests against a real Tinker server are left out: they need Python 3.12 or 3.13, which was not found');
  exit(3);
}
