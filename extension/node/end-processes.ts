// Ends a child process with all its descendants. A process that leads a group is killed with its group. Processes that
// left the group (a daemon, a child spawned with `detached`) are found by a mark in their inherited environment
// variables. The mark contains pid, start time, PID namespace and boot of its owner, which is the process that must end
// the marked processes. These fields show whether the owner is alive, has been killed, or belongs to another container
// or boot. Windows tracks process trees without marks. A process that clears its environment variables and leaves its
// group is not found.
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { programEnvironment, startedByVariable } from '../../envs/api/program-environment';
import { isAlive, isPid, isSamePidScope, showsOwnProcesses, startOf, currentPidScope } from './process-identity';

/**
 * Environment variable that marks the descendants of a process: its value identifies the process that must end these
 * descendants.
 */
export const ownerTagVariable = startedByVariable;

/**
 * Returns a new mark for the environment variables of a child process of `pid` (default: this process):
 * `<pid>.<start>.<namespace>.<boot>+<hex>`, without blanks. Unknown parts are empty.
 */
export function newOwnerTag(pid: number = process.pid): string {
  const { boot, pid_namespace } = currentPidScope;
  return [`${pid}.${startOf(pid) ?? ''}.${pid_namespace ?? ''}.${boot ?? ''}`, randomBytes(8).toString('hex')].join(
    '+',
  );
}

/**
 * Kills the process group of `pid` and all processes with the mark `ownerTag`. On Windows, kills the process tree of
 * `pid`.
 */
export function killTree(pid: number | undefined, ownerTag: string): void {
  if (platform() === 'win32') {
    if (pid !== undefined)
      execFile('taskkill', ['/pid', String(pid), '/T', '/F'], { env: programEnvironment() }, () => undefined);
    return;
  }
  if (pid !== undefined) end(-pid);
  killTagged(found => found === ownerTag);
}

/**
 * Kills processes whose owner ended without killing them. A process is not killed if its owner cannot be checked. This
 * is the case if the mark is from another boot or PID namespace, or if an earlier version wrote the mark without boot
 * and namespace.
 */
export function killAbandoned(): void {
  killTagged(isAbandoned);
}

/** Whether the owner of a mark has ended. False if the owner belongs to another machine, boot or PID namespace. */
export function isAbandoned(ownerTag: string): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d*)\.([\w-]*)\+[0-9a-f]+$/.exec(ownerTag);
  if (!parts) return false;
  const [, pid, start, pid_namespace, boot] = parts;
  const pidScope = { host: currentPidScope.host, boot: boot || null, pid_namespace: pid_namespace || null };
  if (!isPid(Number(pid)) || !isSamePidScope(pidScope, currentPidScope)) return false;
  if (!isAlive(Number(pid))) return true;
  const now = startOf(Number(pid));
  return now !== undefined && now !== start;
}

/** Maximum number of search rounds. Several may be needed, because a process may start a child before it is killed. */
const rounds = 5;

function killTagged(concerns: (ownerTag: string) => boolean): void {
  for (let round = 0; round < rounds; round++) {
    const found = taggedProcesses().filter(({ pid, ownerTag }) => pid !== process.pid && concerns(ownerTag));
    for (const { pid, start } of found) if (start === undefined || startOf(pid) === start) end(pid);
    if (found.length === 0) return;
  }
}

/**
 * A process with its mark and its start time. The start time is read before the mark. If the pid is later reused, the
 * new process has another start time and is therefore not killed.
 */
interface TaggedProcess {
  pid: number;
  ownerTag: string;
  start?: string;
}

/**
 * Returns all running processes of this user that have a mark. Empty if /proc does not show the PID namespace of this
 * process.
 */
function taggedProcesses(): TaggedProcess[] {
  if (platform() === 'linux') {
    if (!showsOwnProcesses()) return [];
    return readdirSync('/proc').flatMap(name => {
      if (!/^\d+$/.test(name)) return [];
      const start = startOf(Number(name));
      const ownerTag = start === undefined ? undefined : ownerTagOf(environmentOf(name).split('\0'));
      return ownerTag === undefined ? [] : [{ pid: Number(name), ownerTag, start }];
    });
  }
  if (platform() !== 'darwin') return [];
  try {
    const text = execFileSync('ps', ['-axEww', '-o', 'pid=,command='], {
      env: programEnvironment(),
      encoding: 'utf8',
      timeout: 5000,
      maxBuffer: 2 ** 26,
    });
    return text.split('\n').flatMap(line => {
      const ownerTag = ownerTagOf(line.split(' '));
      return ownerTag === undefined ? [] : [{ pid: parseInt(line, 10), ownerTag }];
    });
  } catch {
    return [];
  }
}

const ownerTagOf = (entries: readonly string[]): string | undefined =>
  entries.find(entry => entry.startsWith(`${ownerTagVariable}=`))?.slice(ownerTagVariable.length + 1);

/**
 * Returns the environment variables of a process; empty if the process has ended, is a zombie, or belongs to another
 * user.
 */
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
    // the process has already ended
  }
}
