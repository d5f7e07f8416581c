// What `ragen doctor` says of the machine: versions, processor, memory with the limit of the control group, disk, the providers of
// onnxruntime and what `auto` comes to, and the programs and libraries that some features need. Nothing is changed or downloaded.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statfsSync } from 'node:fs';
import { arch, availableParallelism, cpus, freemem, platform, release, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { chooseProvider, providerStates } from '../engine/devices';
import type { Checked, Provider, ProviderState } from '../engine/devices';
import { installation } from '../installation';

/** Compares a small model's loss, gradients and sampled tokens on a provider with the CPU's. */
export type SelfCheck = (provider: Provider) => Promise<Checked>;

export interface ProviderReport extends ProviderState {
  /** Null for the CPU, which the others are compared with, and for a provider that is not there. */
  self_check: Checked | null;
}

export interface MachineReport {
  node: { version: string; required: string; fits: boolean };
  platform: string;
  /** `usable` counts the cores that this process may run on. */
  cpu: { model: string; cores: number; usable: number };
  /** Bytes. `limit` is that of the control group or null; `available` is what a run can have now. */
  memory: { total: number; free: number; limit: number | null; available: number };
  onnxruntime: { version: string; providers: ProviderReport[]; auto: Provider };
  /** Bytes free where the runs of this folder lie. */
  disk: { folder: string; free: number };
  optional: { name: string; found: string | null; for: string }[];
}

/** `workspace` is the folder whose runs are asked about; `selfCheck` is run on every provider but the CPU that is there. */
export async function machineReport(workspace: string, selfCheck?: SelfCheck): Promise<MachineReport> {
  const states = await providerStates();
  const providers: ProviderReport[] = [];
  for (const state of states) {
    const checked = selfCheck && state.provider !== 'cpu' && state.known && state.installed;
    providers.push({ ...state, self_check: checked ? await selfCheck(state.provider) : null });
  }
  const sound = providers.filter(({ provider, self_check }) => provider === 'cpu' || self_check?.faster);
  const required = packageOf(installation.root).engines?.node ?? '';
  return {
    node: {
      version: process.versions.node,
      required,
      fits: Number.parseInt(process.versions.node) >= Number(/\d+/.exec(required)?.[0]),
    },
    platform: `${platform()}-${arch()} ${release()}`,
    cpu: { model: cpus()[0]?.model.trim() ?? 'unknown', cores: cpus().length, usable: availableParallelism() },
    memory: memory(),
    onnxruntime: {
      version: packageOf(join(installation.root, 'node_modules', 'onnxruntime-node')).version,
      providers,
      auto: chooseProvider('auto', sound, '--device'),
    },
    disk: disk(join(workspace, '.ragen', 'runs')),
    optional: optional(),
  };
}

/** Memory in bytes, as a run can have it: the smaller of what the system and the control group leave. */
export function memory(): MachineReport['memory'] {
  const constrained = process.constrainedMemory();
  const limit = constrained > 0 && constrained < totalmem() ? constrained : null;
  return { total: totalmem(), free: freemem(), limit, available: Math.min(process.availableMemory(), freemem()) };
}

/** Free space of the nearest folder that is there. */
function disk(folder: string): MachineReport['disk'] {
  let nearest = folder;
  while (!existsSync(nearest) && dirname(nearest) !== nearest) nearest = dirname(nearest);
  const { bavail, bsize } = statfsSync(nearest);
  return { folder: nearest, free: bavail * bsize };
}

function optional(): MachineReport['optional'] {
  return [
    { name: 'nvidia-smi', found: firstLine('nvidia-smi', ['--query-gpu=name', '--format=csv,noheader']), for: 'cuda' },
    ...(platform() === 'linux' ? [{ name: 'libvulkan.so.1', found: vulkan(), for: 'webgpu' }] : []),
  ];
}

/** First line of what a program says, or null where it is not there. */
function firstLine(program: string, args: string[]): string | null {
  try {
    const said = execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 5000 });
    return said.split('\n')[0].trim();
  } catch {
    return null;
  }
}

/** Path of Vulkan's loader in the folders that the dynamic linker looks in. */
function vulkan(): string | null {
  const fromEnvironment = (process.env.LD_LIBRARY_PATH ?? '').split(':').filter(Boolean);
  const folders = [...fromEnvironment, '/usr/lib', '/usr/lib64', '/lib64', '/usr/local/lib'];
  const triples = existsSync('/usr/lib') ? readdirSync('/usr/lib').filter(name => name.endsWith('-linux-gnu')) : [];
  const all = [...folders, ...triples.map(name => join('/usr/lib', name))];
  return all.map(folder => join(folder, 'libvulkan.so.1')).find(file => existsSync(file)) ?? null;
}

const packageOf = (folder: string): { version: string; engines?: { node: string } } =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string; engines?: { node: string } };
