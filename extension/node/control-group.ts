// A Linux control group for one child process and all its descendants, if the user may create one. With a control
// group, the kernel enforces a memory limit, and all members can be listed and ended. Members include daemons that left
// their process group and cleared their environment variables. Version 2 of control groups is used if the memory
// controller is delegated to a writable group; otherwise, the memory hierarchy of version 1 is used. Without a control
// group, callers find the processes by process group, by a mark in their environment variables, and by parent pid. The
// built-in environment deepcoder has a separate implementation for the programs that it runs
// (envs/deepcoder/control-group.ts), because environments import nothing of the product except its API. Sources:
// docs.kernel.org/admin-guide/cgroup-v2.html and …/cgroup-v1/memory.html.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs';
import { platform } from 'node:os';
import { dirname, join } from 'node:path';

export type ControlGroupVersion = 1 | 2;

const prefix = 'ragen-';

/**
 * Maximum number of kill rounds. Several rounds may be needed, because processes of the group may start other processes
 * between two rounds.
 */
const rounds = 20;

export class ControlGroup {
  private constructor(
    readonly version: ControlGroupVersion,
    readonly folder: string,
  ) {}

  /**
   * Creates a group with a memory limit of `memoryBytes`, not counting reclaimable page cache. Returns undefined if the
   * machine does not support groups or the user may not create one. `root` is the root of the file system.
   */
  static create(memoryBytes: number, root = '/'): ControlGroup | undefined {
    if (platform() !== 'linux') return undefined;
    for (const { version, parent } of parents(root)) {
      const name = `${process.pid}-${randomBytes(8).toString('hex')}`;
      const folder = join(parent, `${prefix}${namespaceOf(root)}-${name}`);
      if (attempt(() => mkdirSync(folder)) === undefined) continue;
      const group = new ControlGroup(version, folder);
      removeAbandoned(parent, version, root);
      const limit = String(Math.ceil(Math.min(memoryBytes, 2 ** 52)));
      const file = version === 2 ? 'memory.max' : 'memory.limit_in_bytes';
      if (attempt(() => writeFileSync(join(folder, file), limit, { flag: 'r+' })) !== undefined) {
        if (version === 2) group.write('memory.oom.group', '1');
        group.write(version === 2 ? 'memory.swap.max' : 'memory.memsw.limit_in_bytes', version === 2 ? '0' : limit);
        return group;
      }
      group.remove();
    }
    return undefined;
  }

  /** Opens an existing group. */
  static open(folder: string, version: ControlGroupVersion): ControlGroup {
    return new ControlGroup(version, folder);
  }

  /** Moves a process into the group; its later children start in the group. Returns false if the system refuses. */
  add(pid: number): boolean {
    return this.write('cgroup.procs', String(pid));
  }

  /** Pids of those processes of the group that are visible to this process. */
  get pids(): number[] {
    return (this.read('cgroup.procs') ?? '')
      .split('\n')
      .map(Number)
      .filter(pid => pid > 0);
  }

  /** Bytes of the group's memory without page cache: process memory, shared memory and tmpfs files. */
  get bytes(): number {
    const rows = new Map((this.read('memory.stat') ?? '').split('\n').map(line => line.split(' ') as [string, string]));
    const names = this.version === 2 ? ['anon', 'shmem'] : ['total_rss', 'total_shmem'];
    return names.reduce((sum, name) => sum + Number(rows.get(name) ?? 0), 0);
  }

  /** Whether the kernel has killed a process of the group because a memory limit was reached. */
  get outOfMemory(): boolean {
    const text = this.read(this.version === 2 ? 'memory.events' : 'memory.oom_control') ?? '';
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0;
  }

  /** Kills all processes of the group with SIGKILL. */
  end(): void {
    if (this.version === 2 && this.write('cgroup.kill', '1')) return;
    for (let round = 0; round < rounds; round++) {
      const { pids } = this;
      if (pids.length === 0) return;
      for (const pid of pids) attempt(() => process.kill(pid, 'SIGKILL'));
    }
  }

  /** Removes the group. Returns false while it still has processes. */
  remove(): boolean {
    return attempt(() => rmdirSync(this.folder)) !== undefined;
  }

  private write(file: string, text: string): boolean {
    return attempt(() => writeFileSync(join(this.folder, file), text, { flag: 'r+' })) !== undefined;
  }

  private read(file: string): string | undefined {
    return attempt(() => readFileSync(join(this.folder, file), 'utf8'));
  }
}

/**
 * Returns the possible parents of a new group with a memory limit. Version 2: the group of this process and that
 * group's parent, each only if it delegates the memory controller. Version 1: the group of this process and the root of
 * the mount.
 */
function parents(root: string): { version: ControlGroupVersion; parent: string }[] {
  const lines = (attempt(() => readFileSync(join(root, 'proc/self/cgroup'), 'utf8')) ?? '')
    .split('\n')
    .map(line => line.split(':'));
  const v2 = lines.find(([id, controllers]) => id === '0' && controllers === '');
  const v1 = lines.find(([, controllers]) => controllers?.split(',').includes('memory'));
  const handsDown = (folder: string) =>
    (attempt(() => readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8')) ?? '').split(/\s+/).includes('memory');
  const found: { version: ControlGroupVersion; parent: string }[] = [];
  if (v2) {
    const path = v2.slice(2).join(':');
    const own = join(root, 'sys/fs/cgroup', path);
    for (const parent of path === '/' ? [own] : [own, dirname(own)])
      if (handsDown(parent)) found.push({ version: 2, parent });
  }
  if (v1) {
    const mount = join(root, 'sys/fs/cgroup/memory');
    const own = join(mount, v1.slice(2).join(':'));
    // In a container, the path may name a group that is not visible in the mount. The root of the mount is then the
    // group of this process.
    for (const parent of [...new Set([own, mount])]) found.push({ version: 1, parent });
  }
  return found;
}

/** Returns the inode of this process's PID namespace. This process cannot check pids of other namespaces. */
const namespaceOf = (root: string): string =>
  /\d+/.exec(attempt(() => readlinkSync(join(root, 'proc/self/ns/pid'))) ?? '')?.[0] ?? '0';

/**
 * Removes groups whose creator has ended, and kills their members. The name of a group contains its creator's PID
 * namespace and pid; groups of other namespaces are not changed.
 */
function removeAbandoned(parent: string, version: ControlGroupVersion, root: string): void {
  const own = `${prefix}${namespaceOf(root)}-`;
  for (const name of attempt(() => readdirSync(parent)) ?? []) {
    const owner = name.startsWith(own) ? Number(/^(\d+)-/.exec(name.slice(own.length))?.[1]) : 0;
    if (!(owner > 0) || isThere(owner)) continue;
    const abandoned = ControlGroup.open(join(parent, name), version);
    abandoned.end();
    abandoned.remove();
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Returns the result of `job`, or `true` if `job` returns nothing. Returns undefined if the system refuses. */
function attempt<T>(job: () => T): (T extends void ? true : T) | undefined {
  try {
    return (job() ?? true) as T extends void ? true : T;
  } catch {
    return undefined;
  }
}
