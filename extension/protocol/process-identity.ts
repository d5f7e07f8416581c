// Which process a number means. A pid alone is not enough: it counts in its PID namespace (of a container) on its machine until the next boot,
// and is given to another process later. So whoever writes a pid down for others writes the place where it counts and when the process
// started; both are compared before anything is concluded from the pid, and before anything is killed by it.
// Sources: proc(5), pid_namespaces(7); /proc/sys/kernel/random/boot_id is another at each boot.
import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { programEnvironment } from '../../envs/api/program-environment';

/** Where a pid counts. Two that are equal are the same place; only Linux has boot ids and namespaces to tell by, the others go by the host. */
export interface ProcessPlace {
  host: string;
  /** Id of the machine's boot; null where it is not known. */
  boot: string | null;
  /** Inode of the PID namespace; null where it is not known, or there are none. */
  pid_namespace: string | null;
}

/** What is asked of the system about processes; tests give their own answers. */
export interface Processes {
  place: ProcessPlace;
  isAlive(pid: number): boolean;
  /** When the process started, in a form that no change of the clock affects; undefined where that is not known. */
  startOf(pid: number): string | undefined;
  /** The same in milliseconds since 1970, by the clock as it is set now. */
  startTimeOf?(pid: number): number | undefined;
}

/** The place of this process. */
export const thisPlace: ProcessPlace = {
  host: hostname(),
  boot: readIf(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
  pid_namespace: readIf(() => /\[(\d+)\]/.exec(readlinkSync('/proc/self/ns/pid'))![1]),
};

/** Whether a pid of one place means the same process in the other. Without a boot id machines go by their names. */
export const isSamePlace = (a: ProcessPlace, b: ProcessPlace): boolean =>
  a.boot === b.boot && a.pid_namespace === b.pid_namespace && (a.boot !== null || a.host === b.host);

/** Whether a number can be the pid of one process: `kill` takes 0 and negative ones for groups, or for everybody. */
export const isPid = (pid: unknown): pid is number =>
  Number.isInteger(pid) && (pid as number) > 0 && (pid as number) < 2 ** 31;

/** Whether /proc shows this process's own namespace: in a new one it shows the old one's numbers until it is mounted again. */
export const showsOwnProcesses = (): boolean => readIf(() => readlinkSync('/proc/self')) === String(process.pid);

/**
 * Whether a process with this pid runs here (also one of another user). One that has ended but was not waited for by its parent, as it
 * stays in containers whose first process is no init, does not run.
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

/** Starts that were asked of another program; a process keeps its own while it lives. */
const starts = new Map<number, string>();

/**
 * When the process started: clock ticks since boot on Linux, else milliseconds since 1970 as the system noted them then. Undefined where there
 * is no such process, or no way to tell.
 */
export function startOf(pid: number): string | undefined {
  if (!isPid(pid)) return undefined;
  if (process.platform === 'linux')
    return showsOwnProcesses() ? (readIf(() => statFields(pid)[19]) ?? undefined) : undefined;
  const known = starts.get(pid) ?? startTimeOf(pid)?.toString();
  if (known !== undefined) starts.set(pid, known);
  return known;
}

/** Start of the process in milliseconds since 1970 (to the second or better), or undefined where that cannot be found out. */
export function startTimeOf(pid: number): number | undefined {
  try {
    if (process.platform === 'linux') return linuxStart(pid);
    if (process.platform === 'darwin') return parsed(run('ps', ['-o', 'lstart=', '-p', String(pid)]));
    if (process.platform === 'win32')
      return parsed(
        run('powershell', [
          '-NoProfile',
          '-Command',
          `(Get-Process -Id ${pid}).StartTime.ToUniversalTime().ToString('o')`,
        ]),
      );
  } catch {
    // No such process any more, or no such tool: unknown.
  }
  return undefined;
}

function linuxStart(pid: number): number | undefined {
  if (!showsOwnProcesses()) return undefined;
  const ticks = Number(statFields(pid)[19]); // field 22: the start in clock ticks since boot
  const boot = Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]);
  const ticksPerSecond = 100; // USER_HZ, fixed by the kernel's interface on all platforms of Node
  return Number.isFinite(ticks + boot) ? (boot + ticks / ticksPerSecond) * 1000 : undefined;
}

/** Fields of /proc/<pid>/stat from the third on, the state; the second, the command, may itself hold spaces and parentheses. */
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

/** What `read` reads, null where it cannot. */
function readIf(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}
