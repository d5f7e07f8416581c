// Ends a process of ours with all that it started, and what those started. A process that leads a group is ended with its group; what
// left that group (a daemon, a child spawned with `detached`) is found by a mark in its environment, which children inherit. The mark
// names the process that gave it, so that what a killed owner left behind is told from what still has one. Windows knows the tree of
// processes by itself. Best effort: who cleans its environment and leaves its group is not found.
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { programEnvironment, startedByVariable } from '../../envs/api/program-environment';

/** The variable that holds the mark. */
export const markVariable = startedByVariable;

/** A new mark of this process, for the environment of one that it starts. */
export const newMark = (): string => `${process.pid}-${randomBytes(8).toString('hex')}`;

/** Ends the process group of `pid`, and all that carry its mark. On Windows the tree below `pid`. */
export function endStarted(pid: number | undefined, mark: string): void {
  if (platform() === 'win32') {
    if (pid !== undefined)
      execFile('taskkill', ['/pid', String(pid), '/T', '/F'], { env: programEnvironment() }, () => undefined);
    return;
  }
  if (pid !== undefined) end(-pid);
  endMarked(found => found === mark);
}

/** Ends what carries a mark of a process that is gone: it was killed together with the one that would have ended this. */
export function endAbandoned(): void {
  endMarked(mark => {
    const owner = Number(/^(\d+)-[0-9a-f]+$/.exec(mark)?.[1]);
    return owner > 0 && !exists(owner);
  });
}

/** Times that it is looked for more: a process may start another while it is being ended. */
const rounds = 5;

function endMarked(concerns: (mark: string) => boolean): void {
  for (let round = 0; round < rounds; round++) {
    const found = marked().filter(({ pid, mark }) => pid !== process.pid && concerns(mark));
    for (const { pid } of found) end(pid);
    if (found.length === 0) return;
  }
}

/** All processes of this user that carry a mark and have not ended. */
function marked(): { pid: number; mark: string }[] {
  if (platform() === 'linux')
    return readdirSync('/proc').flatMap(name => {
      const mark = /^\d+$/.test(name) ? markOf(environmentOf(name).split('\0')) : undefined;
      return mark === undefined ? [] : [{ pid: Number(name), mark }];
    });
  if (platform() !== 'darwin') return [];
  try {
    const text = execFileSync('ps', ['-axEww', '-o', 'pid=,command='], { env: programEnvironment(), encoding: 'utf8', timeout: 5000, maxBuffer: 2 ** 26 }); // prettier-ignore
    return text.split('\n').flatMap(line => {
      const mark = markOf(line.split(' '));
      return mark === undefined ? [] : [{ pid: parseInt(line, 10), mark }];
    });
  } catch {
    return [];
  }
}

const markOf = (entries: readonly string[]): string | undefined =>
  entries.find(entry => entry.startsWith(`${markVariable}=`))?.slice(markVariable.length + 1);

/** Empty where the process is gone, has ended and waits for its parent, or is another user's. */
function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended meanwhile
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
