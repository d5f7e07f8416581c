// Finds a Node.js for the trainer: the setting `ragen.nodePath`, then PATH, then the editor's own runtime. The editor's
// runtime comes last, because it is Electron running as Node (ELECTRON_RUN_AS_NODE). If a program requests an aligned
// block of about 1 GiB of memory, Chromium's allocator in Electron ends the process with SIGTRAP. If the setting is
// invalid, an error is reported, and no other Node.js is used. Must not import `vscode`.
import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { programEnvironment, variablesFor } from '../../../envs/api/program-environment';
import { UserError } from '../../common/user-error';

/** Oldest major version of Node.js that the trainer supports. */
const oldestNode = 20;

export interface NodeRuntime {
  path: string;
  /** Version of Node.js, such as `22.11.0`. */
  version: string;
  /** Whether the executable is Electron, which requires ELECTRON_RUN_AS_NODE to run as Node.js. */
  electron: boolean;
  /**
   * Returns the API keys and tokens for child processes, by the names of their environment variables. This is a
   * function so that a log of this object contains no secrets.
   */
  secrets?(): Readonly<Record<string, string>>;
}

/** External dependencies of the search. */
export interface NodeSearch {
  /** Value of `ragen.nodePath`; empty if not set. */
  setting: string;
  env: NodeJS.ProcessEnv;
  platform: NodeJS.Platform;
  /** The executable of this process, and whether it is Electron. */
  own: { path: string; electron: boolean };
  /** Returns the version of the Node.js at a path; throws if the path is not a Node.js executable. */
  versionOf(path: string, electron: boolean): Promise<string>;
  /** Whether a file exists and is executable. */
  executable(path: string): Promise<boolean>;
}

/** Returns the first suitable Node.js. Throws a UserError that names the setting if none is found. */
export async function findNode(search: NodeSearch): Promise<NodeRuntime> {
  const setting = search.setting.trim();
  if (setting !== '') return fromSetting(setting, search);
  const unfit: string[] = [];
  for (const [path, electron] of [...(await onPath(search)), [search.own.path, search.own.electron]] as [
    string,
    boolean,
  ][]) {
    try {
      const version = await search.versionOf(path, electron);
      if (majorOf(version) >= oldestNode) return { path, version, electron };
      unfit.push(`${path} is ${version}`);
    } catch {
      unfit.push(`${path} does not start`);
    }
  }
  throw new UserError(
    `no Node ${oldestNode} or newer was found (${unfit.join(', ')}): install Node ${oldestNode} or newer, or set ragen.nodePath to the path of Node`,
  );
}

/** Returns the dependencies of a search that uses this process's environment variables, platform and executable. */
export function nodeSearch(setting: string): NodeSearch {
  return {
    setting,
    env: process.env,
    platform: process.platform,
    own: { path: process.execPath, electron: process.versions['electron'] !== undefined },
    versionOf: askVersion,
    executable: path =>
      access(path, process.platform === 'win32' ? constants.F_OK : constants.X_OK).then(
        () => true,
        () => false,
      ),
  };
}

/**
 * Returns the environment variables of a trainer process: the variables of this process without VS Code's internal
 * variables, plus the stored secrets. One more variable disables ONNX Runtime's telemetry, because telemetry must be
 * off before the library is loaded.
 */
export function trainerEnvironment(
  env: NodeJS.ProcessEnv,
  { electron, secrets }: Pick<NodeRuntime, 'electron' | 'secrets'>,
): NodeJS.ProcessEnv {
  const own = secrets?.() ?? {};
  const names = Object.keys(own).join(',');
  const kept = Object.entries(env).filter(([name]) => !/^(ELECTRON_|VSCODE_|APPLICATION_INSIGHTS)/.test(name));
  return {
    ...Object.fromEntries(kept),
    ...own,
    // The trainer redacts the values of these variables in its output.
    ...(names === '' ? {} : { RAGEN_SECRET_NAMES: names }),
    ORT_DISABLE_TELEMETRY: '1',
    ...(electron ? { ELECTRON_RUN_AS_NODE: '1' } : {}),
  };
}

async function fromSetting(setting: string, search: NodeSearch): Promise<NodeRuntime> {
  if (!isAbsolute(setting))
    throw new UserError(
      `ragen.nodePath is ${setting}, which is not an absolute path: set an absolute path, or clear the setting to search PATH`,
    );
  let version: string;
  try {
    version = await search.versionOf(setting, false);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : 'does not start as Node';
    throw new UserError(
      `ragen.nodePath is ${setting}, which ${reason}: set the path of Node ${oldestNode} or newer, or clear the setting`,
    );
  }
  if (majorOf(version) < oldestNode)
    throw new UserError(
      `ragen.nodePath is ${setting}, which is Node ${version}: set the path of Node ${oldestNode} or newer, or clear the setting`,
    );
  return { path: setting, version, electron: false };
}

async function onPath({ env, platform, executable }: NodeSearch): Promise<[string, boolean][]> {
  const found: [string, boolean][] = [];
  for (const folder of (env['PATH'] ?? env['Path'] ?? '').split(delimiter).filter(isAbsolute)) {
    const path = join(folder, platform === 'win32' ? 'node.exe' : 'node');
    if (!found.some(([known]) => known === path) && (await executable(path))) found.push([path, false]);
  }
  return found;
}

const majorOf = (version: string): number => Number(version.split('.')[0]);

function askVersion(path: string, electron: boolean): Promise<string> {
  const env = trainerEnvironment(programEnvironment(variablesFor.node), { electron });
  return new Promise((resolve, reject) => {
    execFile(path, ['-p', 'process.versions.node'], { env, timeout: 10_000, windowsHide: true }, (error, stdout) => {
      const version = /^\d+\.\d+\.\d+/.exec(stdout.trim())?.[0];
      if (error || !version) reject(error ?? new Error(`${path} answered ${stdout.trim()}`));
      else resolve(version);
    });
  });
}
