// Ends a process of ours with all that it started, and what those started. A process that leads a group is ended with its group; what
// left that group (a daemon, a child spawned with `detached`) is found by a mark in its environment, which children inherit. The mark
// names the process that gave it, with its start and the place where its pid counts, so that what a killed owner left behind is
// known from what still has one, and from what belongs to another container or boot. Windows knows the tree of
// processes by itself. Best effort: who cleans its environment and leaves its group is not found.
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { programEnvironment, startedByVariable } from '../../envs/api/program-environment';
import { isAlive, isPid, isSamePlace, showsOwnProcesses, startOf, thisPlace } from './process-identity';

/** The variable that holds the mark. */
export const markVariable = startedByVariable;

/**
 * A new mark of a process (this one where none is named), for the environment of one that it starts: `<pid>.<start>.<namespace>.<boot>+<hex>`,
 * without blanks. Parts that are not known are empty.
 */
export function newMark(pid: number = process.pid): string {
  const { boot, pid_namespace } = thisPlace;
  return [`${pid}.${startOf(pid) ?? ''}.${pid_namespace ?? ''}.${boot ?? ''}`, randomBytes(8).toString('hex')].join(
    '+',
  );
}

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

/**
 * Ends what carries a mark of a process that is gone: it was killed together with the one that would have ended this. A mark of another
 * boot or PID namespace, or one that does not say (of an earlier version), proves nothing: what carries it is left alone.
 */
export function endAbandoned(): void {
  endMarked(isAbandoned);
}

/** Whether the owner of a mark was a process of this place that has ended. */
export function isAbandoned(mark: string): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d*)\.([\w-]*)\+[0-9a-f]+$/.exec(mark);
  if (!parts) return false;
  const [, pid, start, pid_namespace, boot] = parts;
  const place = { host: thisPlace.host, boot: boot || null, pid_namespace: pid_namespace || null };
  if (!isPid(Number(pid)) || !isSamePlace(place, thisPlace)) return false;
  if (!isAlive(Number(pid))) return true;
  const now = startOf(Number(pid));
  return now !== undefined && now !== start;
}

/** Times that it is looked for more: a process may start another while it is being ended. */
const rounds = 5;

function endMarked(concerns: (mark: string) => boolean): void {
  for (let round = 0; round < rounds; round++) {
    const found = marked().filter(({ pid, mark }) => pid !== process.pid && concerns(mark));
    for (const { pid, start } of found) if (start === undefined || startOf(pid) === start) end(pid);
    if (found.length === 0) return;
  }
}

/** A process that carries a mark, and its start, read before the mark was: a later process of the same pid is another. */
interface Marked {
  pid: number;
  mark: string;
  start?: string;
}

/** All processes of this user that carry a mark and have not ended; none where /proc has other numbers than `kill` takes. */
function marked(): Marked[] {
  if (platform() === 'linux') {
    if (!showsOwnProcesses()) return [];
    return readdirSync('/proc').flatMap(name => {
      if (!/^\d+$/.test(name)) return [];
      const start = startOf(Number(name));
      const mark = start === undefined ? undefined : markOf(environmentOf(name).split('\0'));
      return mark === undefined ? [] : [{ pid: Number(name), mark, start }];
    });
  }
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
