// A control group of its own for each program, where this process may make one: the kernel then bounds what all of the program's processes
// hold together, its own structures included, and how many there are. Version 2 takes the nearest group around this process that hands
// memory on to its children; version 1 a group within this process's, in each of the two hierarchies. What may be done is tried, never assumed.
// The environment process has another (extension/protocol/control-group.ts), which ends and counts what is in its group. This one bounds the
// number of processes too, and is apart since environments import nothing of the product but its API.
// Sources: docs.kernel.org/admin-guide/cgroup-v2.html, …/cgroup-v1/memory.html, …/cgroup-v1/pids.html.
import { randomBytes } from 'node:crypto';
import { mkdirSync, existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** What a group bounds. */
export interface GroupLimits {
  bytes: number;
  processes: number;
}

/** Where groups can be made. */
interface Place {
  version: 1 | 2;
  folder: string;
  memory: boolean;
  processes: boolean;
}

/** Begins the names of groups; the number of the process that made one follows, so that another may clear away what it left. */
const prefix = 'ragen-program-';

/** A program's control group. */
export class ControlGroup {
  private constructor(private readonly parts: readonly (Place & { group: string })[]) {}

  /**
   * Makes a group with these limits. Undefined where this process may not, or where memory is not bounded by it.
   * @param root begins all paths; another one than / in tests
   */
  static make(limits: GroupLimits, root = '/'): ControlGroup | undefined {
    const parts: (Place & { group: string })[] = [];
    const name = `${prefix}${process.pid}-${randomBytes(6).toString('hex')}`;
    for (const place of groupPlaces(root)) {
      if (parts.some(part => (part.memory && place.memory) || (part.processes && place.processes))) continue;
      const group = join(place.folder, name);
      try {
        removeAbandoned(place.folder);
        mkdirSync(group);
        parts.push({ ...place, group });
        limit(place, group, limits);
      } catch {
        if (parts.at(-1)?.group === group) remove(parts.pop()!.group);
      }
    }
    const group = new ControlGroup(parts);
    if (parts.some(({ memory }) => memory)) return group;
    group.remove();
    return undefined;
  }

  /** What bounds a program, in words for a table. */
  get about(): string {
    const version = this.parts.find(({ memory }) => memory)!.version;
    const what = this.parts.some(({ processes }) => processes) ? 'memory and number of processes' : 'memory';
    return `${what} by control groups (version ${version})`;
  }

  /** Moves a process, and what it starts from here on, into the group. False where that is not allowed: then nothing is bounded. */
  join(pid: number): boolean {
    try {
      for (const { group } of this.parts) writeFileSync(join(group, 'cgroup.procs'), String(pid));
      return true;
    } catch {
      return false;
    }
  }

  /** Whether the kernel has ended one of its processes because memory was used up. */
  ranOut(): boolean {
    return this.parts.some(({ version, memory, group }) => {
      if (!memory) return false;
      const text = read(join(group, version === 2 ? 'memory.events' : 'memory.oom_control')) ?? '';
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0;
    });
  }

  /** Removes the group, as soon as its last process has ended. */
  remove(tries = 100): void {
    const left = this.parts.filter(({ group }) => !remove(group));
    if (left.length > 0 && tries > 0) setTimeout(() => this.remove(tries - 1), 20).unref();
  }
}

/** Where this process may find room for groups, by its own groups and the mounts that it sees. */
function groupPlaces(root = '/'): Place[] {
  const own = (read(join(root, 'proc/self/cgroup')) ?? '').split('\n').map(line => /^(\d+):([^:]*):(.*)$/.exec(line));
  const mounts = (read(join(root, 'proc/self/mountinfo')) ?? '').split('\n').flatMap(line => mountOf(line) ?? []);
  const places = mounts.flatMap(({ type, options, from, at }): Place[] => {
    const v2 = type === 'cgroup2';
    const wanted = v2 ? [] : ['memory', 'pids'].filter(name => options.includes(name));
    const path = own.find(entry => (v2 ? entry?.[1] === '0' : wanted.includes(entry?.[2].split(',')[0] ?? '') || entry?.[2].split(',').some(name => wanted.includes(name))))?.[3]; // prettier-ignore
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
  return places.filter(({ folder }) => existsSync(folder));
}

/** Type, options, root and mount point of a line of mountinfo, where it is of control groups. */
function mountOf(line: string): { type: string; options: string[]; from: string; at: string } | undefined {
  const [left, right] = line.split(' - ');
  const [, , , from, at] = left.split(' ');
  const [type, , options] = (right ?? '').split(' ');
  return type === 'cgroup' || type === 'cgroup2' ? { type, options: (options ?? '').split(','), from, at } : undefined;
}

/** A group's path below the one that a mount shows; undefined where the mount does not show it. */
function below(path: string, from: string): string | undefined {
  if (from === '/') return path;
  return path === from || path.startsWith(`${from}/`) ? path.slice(from.length) || '/' : undefined;
}

/** @throws where a limit of what the place bounds cannot be set */
function limit({ version, memory, processes }: Place, group: string, limits: GroupLimits): void {
  if (processes) writeFileSync(join(group, 'pids.max'), String(limits.processes));
  if (!memory) return;
  const bytes = String(limits.bytes);
  if (version === 1) {
    writeFileSync(join(group, 'memory.limit_in_bytes'), bytes);
    const swap = join(group, 'memory.memsw.limit_in_bytes'); // missing where swap is not accounted for
    if (existsSync(swap)) writeFileSync(swap, bytes);
    return;
  }
  writeFileSync(join(group, 'memory.max'), bytes);
  const swap = join(group, 'memory.swap.max');
  if (existsSync(swap)) writeFileSync(swap, '0');
  writeFileSync(join(group, 'memory.oom.group'), '1');
}

/** Clears away groups of processes that are gone. One that is used is not removed: the kernel refuses it. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const owner = new RegExp(`^${prefix}(\\d+)-[0-9a-f]+$`).exec(name)?.[1];
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) remove(join(folder, name));
  }
}

/** Whether a group is gone. */
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
