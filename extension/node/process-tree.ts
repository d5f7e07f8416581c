// Measures the memory of a process tree: a root process and its descendants. On Linux, the tree consists of the members
// of the root's control group. Without a control group, the tree consists of the process group, the processes with the
// same owner mark (end-processes.ts), and all descendants of these processes. A process that was found once remains in
// the tree until it ends. On macOS, process groups and parents are read from the output of `ps`. On Windows, nothing is
// measured.
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { platform } from 'node:os';
import { ownerTagVariable } from './end-processes';
import { tagVariable } from '../protocol/environment-link';
import type { ControlGroup } from './control-group';

/** Memory of one process of the tree. */
export interface ProcessMemory {
  pid: number;
  /**
   * Resident bytes. With `exact`, shared pages of child processes are counted proportionally: a page that n processes
   * share adds 1/n of its size to each of them.
   */
  bytes: number;
  /** Tag of the environment that started the process, read from the process's environment variables. */
  tag?: string;
}

export interface TreeMemory {
  /** The processes of the tree; the first one is the root process. */
  processes: ProcessMemory[];
  /** Bytes of all processes. If the tree is a control group, the group's shared memory and tmpfs files are included. */
  bytes: number;
  /** Whether the root process is stopped (SIGSTOP, SIGTSTP). */
  stopped: boolean;
}

interface Known {
  started: string;
  tag?: string;
}

/**
 * Maximum share of time that is spent on searching all processes of the machine for members of the tree. Such a search
 * takes longer on a machine with many processes, so searches are less frequent on such a machine.
 */
const scanShare = 0.01;
const pageBytes = 4096;

export class ProcessTree {
  private readonly known = new Map<number, Known>();
  private scannedUntil = 0;

  constructor(
    private readonly pid: number,
    private readonly ownerTag: string,
    private readonly group: ControlGroup | undefined,
  ) {}

  /**
   * Measures the tree. With `exact`, shared pages of child processes are counted proportionally
   * (`ProcessMemory.bytes`). Returns undefined if nothing can be measured.
   */
  async measure(exact: boolean): Promise<TreeMemory | undefined> {
    if (platform() === 'linux') return this.measureLinux(exact);
    return platform() === 'win32' ? undefined : this.measurePs();
  }

  private measureLinux(exact: boolean): TreeMemory | undefined {
    this.find();
    const own = statOf(this.pid);
    if (!own) return undefined;
    const processes: ProcessMemory[] = [{ pid: this.pid, bytes: own.bytes }];
    for (const [pid, { started, tag }] of this.known) {
      const stat = statOf(pid);
      if (stat?.started !== started || stat.state === 'Z') this.known.delete(pid);
      else processes.push({ pid, bytes: (exact && pss(pid)) || stat.bytes, ...(tag !== undefined && { tag }) });
    }
    const sum = processes.reduce((total, { bytes }) => total + bytes, 0);
    return { processes, bytes: Math.max(sum, this.group?.bytes ?? 0), stopped: own.state === 'T' };
  }

  /** Adds new members of the tree to `known`. */
  private find(): void {
    if (this.group) {
      for (const pid of this.group.pids) this.add(pid, statOf(pid));
      return;
    }
    const from = performance.now();
    if (from < this.scannedUntil) return;
    const stats = new Map<number, Stat>();
    for (const name of readdirSync('/proc')) {
      const pid = Number(name);
      const stat = pid > 0 ? statOf(pid) : undefined;
      if (stat) stats.set(pid, stat);
    }
    for (const [pid, stat] of stats)
      if (stat.group === this.pid || variable(pid, ownerTagVariable) === this.ownerTag) this.add(pid, stat);
    const isMember = (pid: number) => pid === this.pid || this.known.has(pid);
    for (let size = -1; size !== this.known.size;) {
      size = this.known.size;
      for (const [pid, stat] of stats) if (isMember(stat.parent)) this.add(pid, stat);
    }
    const took = performance.now() - from;
    this.scannedUntil = performance.now() + took / scanShare;
  }

  private add(pid: number, stat: Stat | undefined): void {
    if (pid === this.pid || !stat || this.known.get(pid)?.started === stat.started) return;
    this.known.set(pid, { started: stat.started, tag: variable(pid, tagVariable) });
  }

  private measurePs(): Promise<TreeMemory | undefined> {
    return new Promise(resolve => {
      execFile('ps', ['-axo', 'pid=,ppid=,pgid=,rss=,stat='], { timeout: 5000, maxBuffer: 2 ** 24 }, (error, text) => {
        if (error) return resolve(undefined);
        const rows = text.split('\n').map(line => line.trim().split(/\s+/));
        const members = new Set([this.pid]);
        for (let size = 0; size !== members.size;) {
          size = members.size;
          for (const [pid, parent, group] of rows)
            if (Number(group) === this.pid || members.has(Number(parent))) members.add(Number(pid));
        }
        const processes = rows
          .filter(([pid]) => members.has(Number(pid)))
          .map(([pid, , , kibibytes]) => ({ pid: Number(pid), bytes: Number(kibibytes) * 1024 }));
        const own = rows.find(([pid]) => Number(pid) === this.pid);
        const bytes = processes.reduce((sum, process) => sum + process.bytes, 0);
        resolve(own && { processes, bytes, stopped: own[4].startsWith('T') });
      });
    });
  }
}

interface Stat {
  state: string;
  parent: number;
  group: number;
  started: string;
  bytes: number;
}

/** Parses /proc/<pid>/stat, see proc_pid_stat(5). The name in parentheses may contain any characters. */
function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [state, parent, group] = fields;
    return {
      state,
      parent: Number(parent),
      group: Number(group),
      started: fields[19],
      bytes: Number(fields[21]) * pageBytes,
    };
  } catch {
    return undefined;
  }
}

/** Returns the proportional set size of a process in bytes; 0 if unavailable. */
function pss(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Returns the value that an environment variable had when a process was started. */
function variable(pid: number, name: string): string | undefined {
  try {
    const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    return entries.find(entry => entry.startsWith(`${name}=`))?.slice(name.length + 1);
  } catch {
    return undefined;
  }
}
