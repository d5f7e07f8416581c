// Memory available to this process and its children. Without a limit, the system's free memory is available. If a
// control group (container, service, batch job) has a limit, at most the unused part of the limit is available. The
// usage of a group includes its page cache, which the kernel drops under memory pressure. The page cache is therefore
// subtracted; otherwise a group would appear full after model weights were read. Sources:
// docs.kernel.org/admin-guide/cgroup-v2.html and …/cgroup-v1/memory.html.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { freemem, platform, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { minimum } from '../common/lists';
import { programEnvironment } from '../../envs/api/program-environment';

/** Memory sizes in bytes. */
export interface MachineMemory {
  total: number;
  /** Unused memory plus caches that the system drops on demand. */
  free: number;
  /**
   * Smallest memory limit of the control groups that contain this process; null if no limit is below the machine's
   * memory.
   */
  limit: number | null;
  /** Additional memory that this process and its children can allocate now. */
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

/**
 * Returns the memory available to a run that replaces this process: the available memory, plus the resident memory that
 * this process frees when it ends.
 */
export const memoryForRun = ({ available }: MachineMemory = machineMemory()): number =>
  available + process.memoryUsage.rss();

/**
 * Returns the default memory limit for environment code: half of the machine's memory, or half of the control group's
 * limit if this limit is lower.
 */
export const environmentMemory = ({ total, limit }: MachineMemory = machineMemory()): number =>
  Math.floor(Math.min(total, limit ?? total) / 2);

/**
 * Returns the control groups that contain this process and have a limit, innermost first. `left` is the number of bytes
 * that the group can still allocate.
 */
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

/** Returns the folders of a group and of its parents. In a container, some of these folders may not be visible. */
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
  const limit = Number(read(join(folder, names.limit)) ?? 'max'); // "max" becomes NaN
  const used = Number(read(join(folder, names.used)) ?? 'none');
  if (!Number.isFinite(limit) || !Number.isFinite(used)) return null;
  const pages = new Map(
    (read(join(folder, 'memory.stat')) ?? '').split('\n').map(line => line.split(' ') as [string, string]),
  );
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

/** Returns the free memory on macOS, including reclaimable cached pages, which Node's `freemem` does not count. */
function darwinFree(): number {
  try {
    return freeOfVmStat(
      execFileSync('vm_stat', { env: programEnvironment(), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  } catch {
    return freemem();
  }
}

/** Returns the available bytes according to the output of macOS's `vm_stat`. */
export function freeOfVmStat(text: string): number {
  const page = Number(/page size of (\d+) bytes/.exec(text)?.[1]);
  const pages = (name: string): number => Number(new RegExp(`^Pages ${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return page * ['free', 'inactive', 'speculative', 'purgeable'].reduce((sum, name) => sum + pages(name), 0);
}
