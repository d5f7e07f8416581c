// Whether a process runs and when it started, to tell the process that wrote a lease from a later one that was given the same pid.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { programEnvironment } from '../../../envs/api/program-environment';

/**
 * Whether a process with this pid runs here (also one of another user). One that has ended but was not waited for by its parent, as it
 * stays in containers whose first process is no init, does not run.
 */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  if (process.platform !== 'linux') return true;
  try {
    return !['Z', 'X'].includes(statFields(pid)[0]);
  } catch {
    return true; // /proc is hidden
  }
}

/** Start of the process in milliseconds since 1970 (to the second or better), or undefined where that cannot be found out. */
export function processStart(pid: number): number | undefined {
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
