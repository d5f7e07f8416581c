// How much memory this process and what it starts can have: what the system has free, unless a control group (a container, a service, a
// batch system's job) leaves less. A group's own number of bytes in use counts the pages of files that it has read, which the kernel
// drops for whoever needs room; they are taken off, or a machine that has just read a model's weights would seem full.
// Sources: docs.kernel.org/admin-guide/cgroup-v2.html and …/cgroup-v1/memory.html.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { freemem, platform, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { minimum } from '../protocol/lists';
import { programEnvironment } from '../../envs/api/program-environment';

/** Bytes. */
export interface MachineMemory {
  total: number;
  /** What nobody uses, and what the system drops at need. */
  free: number;
  /** The smallest limit of the control groups that this process is in; null where there is none below the machine's memory. */
  limit: number | null;
  /** What more this process and its children can have now. */
  available: number;
}

export function machineMemory(): MachineMemory {
  const total = totalmem();
  const free = platform() === 'darwin' ? darwinFree() : freemem();
  const groups = platform() === 'linux' ? controlGroups().filter(({ limit }) => limit < total) : [];
  return {
    total,
    free,
    limit: groups.length > 0 ? minimum(groups.map(({ limit }) => limit)) : null,
    available: minimum(
      groups.map(({ left }) => left),
      free,
    ),
  };
}

/** What a run that takes this process's place can have: the memory of this process is its too. */
export const memoryForRun = ({ available }: MachineMemory = machineMemory()): number =>
  available + process.memoryUsage.rss();

/** What environment code may hold by default: half of what the machine, or the control group that this process is in, has. */
export const environmentMemory = ({ total, limit }: MachineMemory = machineMemory()): number =>
  Math.floor(Math.min(total, limit ?? total) / 2);

/** The control groups with a limit that this process is in, the innermost first; `left` are the bytes that they leave. */
export function controlGroups(root = '/'): { limit: number; left: number }[] {
  const lines = (read(join(root, 'proc/self/cgroup')) ?? '').split('\n').map(line => line.split(':'));
  const v1 = lines.find(([, controllers]) => controllers?.split(',').includes('memory'));
  const v2 = lines.find(([id, controllers]) => id === '0' && controllers === '');
  const found = [
    ...(v1 ? ancestors(join(root, 'sys/fs/cgroup/memory'), v1.slice(2).join(':')) : []).map(folder =>
      group(folder, { limit: 'memory.limit_in_bytes', used: 'memory.usage_in_bytes', prefix: 'total_' }),
    ),
    ...(v2 ? ancestors(join(root, 'sys/fs/cgroup'), v2.slice(2).join(':')) : []).map(folder =>
      group(folder, { limit: 'memory.max', used: 'memory.current', prefix: '' }),
    ),
  ];
  return found.filter(group => group !== null);
}

/** The folder of a group and those of the groups around it. In a container the path may name folders that are not in sight. */
function ancestors(mount: string, path: string): string[] {
  const folders: string[] = [];
  for (let at = join('/', path); ; at = dirname(at)) {
    folders.push(join(mount, at));
    if (at === '/') return folders;
  }
}

function group(
  folder: string,
  names: { limit: string; used: string; prefix: string },
): { limit: number; left: number } | null {
  const limit = Number(read(join(folder, names.limit)) ?? 'max'); // "max" is no number
  const used = Number(read(join(folder, names.used)) ?? 'none');
  if (!Number.isFinite(limit) || !Number.isFinite(used)) return null;
  const pages = new Map((read(join(folder, 'memory.stat')) ?? '').split('\n').map(line => line.split(' ') as [string, string])); // prettier-ignore
  const droppable = ['inactive_file', 'active_file'].reduce(
    (sum, name) => sum + Number(pages.get(names.prefix + name) ?? 0),
    0,
  );
  return { limit, left: Math.max(0, limit - used + Math.min(droppable, used)) };
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return null;
  }
}

/** On macOS what is called free is little on purpose: pages kept for later use can be had as well. */
function darwinFree(): number {
  try {
    return freeOfVmStat(
      execFileSync('vm_stat', { env: programEnvironment(), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  } catch {
    return freemem();
  }
}

/** Bytes that can be had, by what macOS's `vm_stat` prints. */
export function freeOfVmStat(text: string): number {
  const page = Number(/page size of (\d+) bytes/.exec(text)?.[1]);
  const pages = (name: string): number => Number(new RegExp(`^Pages ${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return page * ['free', 'inactive', 'speculative', 'purgeable'].reduce((sum, name) => sum + pages(name), 0);
}
