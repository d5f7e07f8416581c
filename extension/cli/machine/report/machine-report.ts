// The machine report of `ragen doctor`: versions, processor, memory, the memory limits of control groups, and disk. It
// lists onnxruntime's providers and the provider that `auto` selects. It also lists programs and libraries that some
// features need. The report downloads nothing and leaves the machine unchanged.
import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, readdirSync, statfsSync } from 'node:fs';
import { arch, availableParallelism, cpus, platform, release, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { programEnvironment, variablesFor } from '../../../../envs/api/program-environment';
import { requireIsolation } from '../../../../envs/deepcoder/sandbox';
import { chooseProvider, providerStates } from '../../../engine/session/devices';
import { installation } from '../../../node/installation';
import { machineMemory } from '../../../node/machine-memory';
import type { MachineMemory } from '../../../node/machine-memory';
import { HubCache } from '../../../hub/hub-cache';
import { environmentLimits } from './environment-limits';
import type { EnvironmentLimits } from './environment-limits';
import type { DeviceCheck, Provider, ProviderState } from '../../../engine/session/devices';

/** Runs a small model on a provider and on the CPU, and compares loss, gradients and sampled tokens. */
export type SelfCheck = (provider: Provider) => Promise<DeviceCheck>;

export interface ProviderReport extends ProviderState {
  /** Null for an unavailable provider, and for the CPU, with which the other providers are compared. */
  self_check: DeviceCheck | null;
}

export interface MachineReport {
  node: { version: string; required: string; fits: boolean };
  platform: string;
  /** `usable` is the number of cores on which this process may run. */
  cpu: { model: string; cores: number; usable: number };
  memory: MachineMemory;
  onnxruntime: { version: string; providers: ProviderReport[]; auto: Provider };
  /** Free bytes on the disk of `folder`, in which runs are stored. */
  disk: { folder: string; free: number };
  /** Folders to which runs write. `problem` gives the reason if a folder is not writable, and is null otherwise. */
  folders: { path: string; for: string; problem: string | null }[];
  /** Mechanisms that enforce limits on environments. */
  environments: EnvironmentLimits;
  optional: { name: string; found: string | null; for: string }[];
}

/**
 * Creates the report. `workspace` is the folder of the runs; `selfCheck` is called for each available provider of
 * `candidates`.
 */
export async function machineReport(
  workspace: string,
  selfCheck?: SelfCheck,
  candidates: readonly Provider[] = ['cuda', 'webgpu'],
): Promise<MachineReport> {
  const providers: ProviderReport[] = [];
  for (const state of await providerStates()) {
    const checked = selfCheck && candidates.includes(state.provider) && state.known && state.installed;
    providers.push({ ...state, self_check: checked ? await selfCheck(state.provider) : null });
  }
  const sound = providers.filter(({ provider, self_check }) => provider === 'cpu' || self_check?.faster);
  const version = process.versions.node;
  const required = packageOf(installation.root).engines?.node ?? '';
  return {
    node: { version, required, fits: nodeFits(version, required) },
    platform: `${platform()}-${arch()} ${release()}`,
    cpu: { model: cpus()[0]?.model.trim() ?? 'unknown', cores: cpus().length, usable: availableParallelism() },
    memory: machineMemory(),
    onnxruntime: {
      version: packageOf(join(installation.root, 'node_modules', 'onnxruntime-node')).version,
      providers,
      auto: chooseProvider('auto', sound, '--device'),
    },
    disk: disk(join(workspace, '.ragen', 'runs')),
    folders: [
      folder(join(workspace, '.ragen', 'runs'), 'runs'),
      folder(dirname(new HubCache('any/model').root), 'models of the hub'),
      folder(tmpdir(), 'environment builds'),
    ],
    environments: environmentLimits(),
    optional: await optional(),
  };
}

/** Whether a version of Node satisfies `required`, the `engines.node` of package.json, such as `>=20`. */
export const nodeFits = (version: string, required: string): boolean =>
  Number.parseInt(version) >= Number(/\d+/.exec(required)?.[0]);

/** Returns the free space of a folder or, if it is missing, of the nearest existing parent folder. */
function disk(path: string): MachineReport['disk'] {
  const nearest = nearestFolder(path);
  const { bavail, bsize } = statfsSync(nearest);
  return { folder: nearest, free: bavail * bsize };
}

/** Tests whether files can be created in a folder or, if it is missing, whether the folder can be created. */
function folder(path: string, use: string): MachineReport['folders'][number] {
  const nearest = nearestFolder(path);
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK);
    return { path, for: use, problem: null };
  } catch (error) {
    return { path, for: use, problem: `${nearest} cannot be written to (${(error as NodeJS.ErrnoException).code})` };
  }
}

function nearestFolder(path: string): string {
  let nearest = path;
  while (!existsSync(nearest) && dirname(nearest) !== nearest) nearest = dirname(nearest);
  return nearest;
}

async function optional(): Promise<MachineReport['optional']> {
  return [
    { name: 'nvidia-smi', found: firstLine('nvidia-smi', ['--query-gpu=name', '--format=csv,noheader']), for: 'cuda' },
    ...(platform() === 'linux'
      ? [
          { name: 'libvulkan.so.1', found: vulkan(), for: 'webgpu' },
          { name: 'bubblewrap', found: await isolation(), for: 'the environment deepcoder' },
        ]
      : []),
  ];
}

/**
 * Runs a test program to find out how this machine isolates programs that a model has written. Returns a description,
 * or null if bubblewrap is not installed.
 */
async function isolation(): Promise<string | null> {
  const version = firstLine('bwrap', ['--version']);
  if (version === null) return null;
  try {
    const { namespaces, memory } = await requireIsolation();
    return `${version}: ${namespaces}; ${memory}`;
  } catch (error) {
    return `${version}, but programs cannot be isolated: deepcoder ${(error as Error).message}`;
  }
}

/** Returns the first line of a program's output, or null if the program cannot be run. */
function firstLine(program: string, args: string[]): string | null {
  try {
    const output = execFileSync(program, args, {
      encoding: 'utf8',
      env: programEnvironment(variablesFor.devices),
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 5000,
    });
    return output.split('\n')[0].trim();
  } catch {
    return null;
  }
}

/** Returns the path of Vulkan's loader library; null if it is not in the dynamic linker's folders. */
function vulkan(): string | null {
  const fromEnvironment = (process.env.LD_LIBRARY_PATH ?? '').split(':').filter(Boolean);
  const folders = [...fromEnvironment, '/usr/lib', '/usr/lib64', '/lib64', '/usr/local/lib'];
  const triples = existsSync('/usr/lib') ? readdirSync('/usr/lib').filter(name => name.endsWith('-linux-gnu')) : [];
  const all = [...folders, ...triples.map(name => join('/usr/lib', name))];
  return all.map(folder => join(folder, 'libvulkan.so.1')).find(file => existsSync(file)) ?? null;
}

const packageOf = (folder: string): { version: string; engines?: { node: string } } =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string; engines?: { node: string } };
