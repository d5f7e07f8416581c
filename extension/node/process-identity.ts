// Identifies processes. A pid is ambiguous: it is valid only in its PID namespace (container), on its machine and until
// the next boot. The system may also reuse a pid. A stored pid is therefore accompanied by its PID scope and the
// process's start time. PID scope and start time are compared before the pid is used to check or kill a process.
// Sources: proc(5), pid_namespaces(7). The boot id is /proc/sys/kernel/random/boot_id, which changes at each boot.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { programEnvironment } from '../../envs/api/program-environment';

/**
 * Scope in which a pid is valid. On Linux, the scope consists of boot id and PID namespace. Other systems have neither,
 * so the scope is the host name.
 */
export interface PidScope {
  host: string;
  /** Boot id of the machine; null if unknown. */
  boot: string | null;
  /** Inode of the PID namespace; null if unknown or not supported. */
  pid_namespace: string | null;
}

/** Queries about processes, replaceable in tests. */
export interface Processes {
  pidScope: PidScope;
  isAlive(pid: number): boolean;
  /** Returns the start time as text that clock adjustments do not change; undefined if unknown. */
  startOf(pid: number): string | undefined;
  /** Returns the start time in milliseconds since 1970, according to the current system clock; undefined if unknown. */
  startTimeOf?(pid: number): number | undefined;
}

/** PID scope of this process. */
export const currentPidScope: PidScope = {
  host: hostname(),
  boot: readIf(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
  pid_namespace: readIf(() => /\[(\d+)\]/.exec(readlinkSync('/proc/self/ns/pid'))![1]),
};

/**
 * Whether two PID scopes are equal, so that a pid names the same process in both scopes. If the boot ids are unknown,
 * the host names are compared.
 */
export const isSamePidScope = (a: PidScope, b: PidScope): boolean =>
  a.boot === b.boot && a.pid_namespace === b.pid_namespace && (a.boot !== null || a.host === b.host);

/**
 * Whether a number can be the pid of a single process. 0 and negative numbers are not accepted, because with such a
 * pid, `kill` would end several processes.
 */
export const isPid = (pid: unknown): pid is number =>
  Number.isInteger(pid) && (pid as number) > 0 && (pid as number) < 2 ** 31;

/**
 * Whether /proc shows the PID namespace of this process. After a new namespace is created, /proc shows the old
 * namespace until /proc is remounted.
 */
export const showsOwnProcesses = (): boolean => readIf(() => readlinkSync('/proc/self')) === String(process.pid);

/**
 * Whether a process with this pid is running on this machine, under any user. False for zombies, which remain in
 * containers whose first process is not an init.
 */
export function isAlive(pid: number): boolean {
  if (!isPid(pid)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return true;
    starts.delete(pid);
    return false;
  }
  if (process.platform !== 'linux' || !showsOwnProcesses()) return true;
  try {
    return !['Z', 'X'].includes(statFields(pid)[0]);
  } catch {
    return true; // /proc is hidden
  }
}

/** Start times by pid, as reported by an external program. */
const starts = new Map<number, string>();

/**
 * Returns the start time of a process as text. On Linux, the text is the number of clock ticks since boot. On other
 * systems, the text is the number of milliseconds since 1970. This number is stored at the first call, so later changes
 * of the clock do not affect it. Undefined if the process does not exist or the time cannot be determined.
 */
export function startOf(pid: number): string | undefined {
  if (!isPid(pid)) return undefined;
  if (process.platform === 'linux')
    return showsOwnProcesses() ? (readIf(() => statFields(pid)[19]) ?? undefined) : undefined;
  const known = starts.get(pid) ?? startTimeOf(pid)?.toString();
  if (known !== undefined) starts.set(pid, known);
  return known;
}

/**
 * Does the same as `startOf`, but does not block while a program reads the time, and never returns a stored time, so
 * that a reused pid is detected.
 */
export async function readStart(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux' || !isPid(pid)) return startOf(pid);
  const command = startCommand(pid);
  if (!command) return undefined;
  try {
    const { stdout } = await promisify(execFile)(command[0], command[1], { env: programEnvironment(), timeout: 5000 });
    return parsed(stdout)?.toString();
  } catch {
    return undefined; // the process or the tool does not exist
  }
}

/**
 * Returns the start of a process in milliseconds since 1970 (accurate to a second or better), or undefined if unknown.
 */
export function startTimeOf(pid: number): number | undefined {
  try {
    if (process.platform === 'linux') return linuxStart(pid);
    const command = startCommand(pid);
    return command && parsed(run(...command));
  } catch {
    return undefined; // the process or the tool does not exist
  }
}

/** Returns program and arguments that print the start time of a process; undefined on systems without such a program. */
function startCommand(pid: number): [file: string, args: string[]] | undefined {
  if (process.platform === 'darwin') return ['ps', ['-o', 'lstart=', '-p', String(pid)]];
  const script = `(Get-Process -Id ${pid}).StartTime.ToUniversalTime().ToString('o')`;
  return process.platform === 'win32' ? ['powershell', ['-NoProfile', '-Command', script]] : undefined;
}

function linuxStart(pid: number): number | undefined {
  if (!showsOwnProcesses()) return undefined;
  const ticks = Number(statFields(pid)[19]); // field 22: start in clock ticks since boot
  const boot = Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]);
  const ticksPerSecond = 100; // USER_HZ, a kernel ABI constant on all platforms of Node.js
  return Number.isFinite(ticks + boot) ? (boot + ticks / ticksPerSecond) * 1000 : undefined;
}

/**
 * Returns the fields of /proc/<pid>/stat from the third field (the state) on. The second field, the command, may
 * contain spaces and parentheses.
 */
function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

const run = (file: string, args: string[]): string =>
  execFileSync(file, args, {
    env: programEnvironment(),
    encoding: 'utf8',
    timeout: 5000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });

const parsed = (text: string): number | undefined => {
  const time = Date.parse(text.trim());
  return Number.isNaN(time) ? undefined : time;
};

/** Returns the result of `read`, or null if it throws. */
function readIf(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}
