// When a process started, to tell the process that wrote a lease from a later one that was given the same pid.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Whether a process with this pid exists here (also one of another user). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
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
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field, the command, may itself hold spaces and parentheses; field 22 is the start in clock ticks since boot.
  const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
  const boot = Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]);
  const ticksPerSecond = 100; // USER_HZ, fixed by the kernel's interface on all platforms of Node
  return Number.isFinite(ticks + boot) ? (boot + ticks / ticksPerSecond) * 1000 : undefined;
}

const run = (file: string, args: string[]): string =>
  execFileSync(file, args, { encoding: 'utf8', timeout: 5000, stdio: ['ignore', 'pipe', 'ignore'] });

const parsed = (text: string): number | undefined => {
  const time = Date.parse(text.trim());
  return Number.isNaN(time) ? undefined : time;
};
