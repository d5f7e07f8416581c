// Virtual environments with Python packages, for tests against real servers. An environment is made again if its mark
// does not name the wanted contents.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Interpreters to try: on the PATH, and those of pyenv. */
function candidates(names) {
  const versions = join(homedir(), '.pyenv', 'versions');
  const own = existsSync(versions) ? readdirSync(versions).map(name => join(versions, name, 'bin', 'python')) : [];
  return [...names, 'python3', ...own];
}

const isUsable = (command, minors) => {
  const { status, stdout } = spawnSync(command, ['-c', 'import sys, venv; print(sys.version_info[:2])'], {
    encoding: 'utf8',
  });
  return status === 0 && minors.some(minor => stdout.includes(`(3, ${minor})`));
};

/**
 * Makes the virtual environment `folder`, unless its mark says `wanted`; returns false where there is no suitable Python.
 * `minors` are the minor versions of Python 3 that suit, the best first. `packages` are the arguments of each
 * `pip install`.
 */
export function installEnvironment({ folder, wanted, minors, packages }) {
  const mark = join(folder, 'installed');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return true;
  const found = candidates(minors.map(minor => `python3.${minor}`)).find(command => isUsable(command, minors));
  if (found === undefined) return false;
  rmSync(folder, { recursive: true, force: true });
  const run = (command, ...args) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  run(found, '-m', 'venv', folder);
  // Modules are compiled when they are first imported; most never are.
  const install = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--disable-pip-version-check'];
  for (const args of packages) run(join(folder, 'bin', 'python'), ...install, ...args);
  writeFileSync(mark, wanted);
  return true;
}
