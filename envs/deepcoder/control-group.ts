// Creates a cgroup for each tested program, if this process has the permission. The kernel then limits the number of
// the program's processes and their total memory, including kernel structures. With version 2 of cgroups, the new
// cgroup is a child of the nearest enclosing cgroup whose children may have memory limits. With version 1, one cgroup
// is created in the memory hierarchy and one in the pids hierarchy, each as a child of this process's own cgroup.
// Permissions are not checked in advance, so the creation of a cgroup may fail. extension/node/control-group.ts, which
// limits the environment process, is a separate implementation, because environments must not import other code of the
// product.
// Sources: docs.kernel.org/admin-guide/cgroup-v2.html, …/cgroup-v1/memory.html, …/cgroup-v1/pids.html.
import { randomBytes } from 'node:crypto';
import { mkdirSync, existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Limits of a cgroup: total bytes of memory and number of processes. */
export interface GroupLimits {
  bytes: number;
  processes: number;
}

/**
 * A folder in which cgroups can be created; `memory` and `processes` state whether these cgroups can limit memory and
 * the number of processes.
 */
interface ControlGroupMount {
  version: 1 | 2;
  folder: string;
  memory: boolean;
  processes: boolean;
}

/**
 * Prefix of cgroup names. It is followed by the id of the process that created the cgroup. Other processes can
 * therefore remove cgroups whose creator has ended.
 */
const prefix = 'ragen-program-';

/** The cgroup of one program: one folder in version 2, up to two folders in version 1. */
export class ControlGroup {
  private constructor(private readonly parts: readonly (ControlGroupMount & { group: string })[]) {}

  /**
   * Creates a cgroup with these limits. Returns undefined if this process lacks permission, or if the memory limit is
   * not supported.
   * @param root prefix of all paths; differs from / in tests
   */
  static make(limits: GroupLimits, root = '/'): ControlGroup | undefined {
    const parts: (ControlGroupMount & { group: string })[] = [];
    const name = `${prefix}${process.pid}-${randomBytes(6).toString('hex')}`;
    for (const mount of groupMounts(root)) {
      if (parts.some(part => (part.memory && mount.memory) || (part.processes && mount.processes))) continue;
      const group = join(mount.folder, name);
      try {
        removeAbandoned(mount.folder);
        mkdirSync(group);
        parts.push({ ...mount, group });
        limit(mount, group, limits);
      } catch {
        if (parts.at(-1)?.group === group) remove(parts.pop()!.group);
      }
    }
    const group = new ControlGroup(parts);
    if (parts.some(({ memory }) => memory)) return group;
    group.remove();
    return undefined;
  }

  /** The active limits, formatted for a table of protections. */
  get about(): string {
    const version = this.parts.find(({ memory }) => memory)!.version;
    const what = this.parts.some(({ processes }) => processes) ? 'memory and number of processes' : 'memory';
    return `${what} by control groups (version ${version})`;
  }

  /**
   * Moves a process into the cgroup; children that the process starts later are in the cgroup too. Returns false if the
   * system refuses to move the process; the limits then do not apply.
   */
  join(pid: number): boolean {
    try {
      for (const { group } of this.parts) writeFileSync(join(group, 'cgroup.procs'), String(pid));
      return true;
    } catch {
      return false;
    }
  }

  /** Whether the kernel killed one of the cgroup's processes because of the memory limit. */
  ranOut(): boolean {
    return this.parts.some(({ version, memory, group }) => {
      if (!memory) return false;
      const text = read(join(group, version === 2 ? 'memory.events' : 'memory.oom_control')) ?? '';
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0;
    });
  }

  /** Removes the cgroup. While it still has processes, retries every 20 ms, at most `tries` times. */
  remove(tries = 100): void {
    const left = this.parts.filter(({ group }) => !remove(group));
    if (left.length > 0 && tries > 0) setTimeout(() => this.remove(tries - 1), 20).unref();
  }
}

/** Returns the folders that may accept new cgroups, derived from this process's own cgroups and its mounts. */
function groupMounts(root = '/'): ControlGroupMount[] {
  const own = (read(join(root, 'proc/self/cgroup')) ?? '').split('\n').map(line => /^(\d+):([^:]*):(.*)$/.exec(line));
  const mounts = (read(join(root, 'proc/self/mountinfo')) ?? '').split('\n').flatMap(line => mountOf(line) ?? []);
  const mounted = mounts.flatMap(({ type, options, from, at }): ControlGroupMount[] => {
    const v2 = type === 'cgroup2';
    const wanted = v2 ? [] : ['memory', 'pids'].filter(name => options.includes(name));
    const path = own.find(entry =>
      v2
        ? entry?.[1] === '0'
        : wanted.includes(entry?.[2].split(',')[0] ?? '') || entry?.[2].split(',').some(name => wanted.includes(name)),
    )?.[3];
    const within = path === undefined ? undefined : below(path, from);
    if (within === undefined || (!v2 && wanted.length === 0)) return [];
    if (!v2) {
      const folder = join(root, at, within);
      return [{ version: 1, folder, memory: wanted.includes('memory'), processes: wanted.includes('pids') }];
    }
    for (let folder = within; ; folder = dirname(folder)) {
      const handed = (read(join(root, at, folder, 'cgroup.subtree_control')) ?? '').split(' ');
      if (handed.includes('memory'))
        return [{ version: 2, folder: join(root, at, folder), memory: true, processes: handed.includes('pids') }];
      if (folder === '/' || folder === '.') return [];
    }
  });
  return mounted.filter(({ folder }) => existsSync(folder));
}

/**
 * Parses a line of mountinfo into type, options, root (`from`) and mount point (`at`). Returns undefined if the line
 * does not describe a cgroup mount.
 */
function mountOf(line: string): { type: string; options: string[]; from: string; at: string } | undefined {
  const [left, right] = line.split(' - ');
  const [, , , from, at] = left.split(' ');
  const [type, , options] = (right ?? '').split(' ');
  return type === 'cgroup' || type === 'cgroup2' ? { type, options: (options ?? '').split(','), from, at } : undefined;
}

/** Returns the path of a cgroup relative to the root of a mount; undefined if the cgroup is outside this root. */
function below(path: string, from: string): string | undefined {
  if (from === '/') return path;
  return path === from || path.startsWith(`${from}/`) ? path.slice(from.length) || '/' : undefined;
}

/**
 * Writes the limits of a new cgroup.
 * @throws if a limit that the mount supports cannot be set
 */
function limit({ version, memory, processes }: ControlGroupMount, group: string, limits: GroupLimits): void {
  if (processes) writeFileSync(join(group, 'pids.max'), String(limits.processes));
  if (!memory) return;
  const bytes = String(limits.bytes);
  if (version === 1) {
    writeFileSync(join(group, 'memory.limit_in_bytes'), bytes);
    const swap = join(group, 'memory.memsw.limit_in_bytes'); // missing if swap accounting is off
    if (existsSync(swap)) writeFileSync(swap, bytes);
    return;
  }
  writeFileSync(join(group, 'memory.max'), bytes);
  const swap = join(group, 'memory.swap.max');
  if (existsSync(swap)) writeFileSync(swap, '0');
  writeFileSync(join(group, 'memory.oom.group'), '1');
}

/** Removes cgroups whose creating process has ended. The kernel refuses to remove a cgroup that still has processes. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const owner = new RegExp(`^${prefix}(\\d+)-[0-9a-f]+$`).exec(name)?.[1];
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) remove(join(folder, name));
  }
}

/** Removes a cgroup's folder and returns whether it no longer exists. */
function remove(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch {
    return !existsSync(group);
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}
