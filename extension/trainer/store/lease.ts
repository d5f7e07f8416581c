// The lease says which process trains a run. It is created exclusively and touched every second.
// node/lease-judgement.ts decides whether its trainer lives: by the process itself on this machine, by the touches
// for another machine or container. Takeover of an abandoned lease is guarded by a second exclusive file, so that only
// one of two candidates gets it.
// Not proper-lockfile: it judges a lock by its touches alone, not by the boot, pid and start time of its holder.
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { holderOf, isFresh, pidScopeOf, type LeaseHolder } from '../../node/lease-judgement';
import { isAlive, isSamePidScope, startOf, startTimeOf, currentPidScope } from '../../node/process-identity';
import type { Processes } from '../../node/process-identity';
import { isLeaseOf, leaseSchema, leaseStaleMs } from '../../run-data/run-lease';
import { runFiles } from '../../run-data/run-files';
import type { Lease } from '../../run-data/run-lease';
import { readRunFileSync } from '../../node/run-file';
import { UserError } from '../../common/user-error';
import { storeError } from '../../node/files';

const touchMs = 1000;
/**
 * A lease last touched this many milliseconds ago by the local clock is stale whatever the other clock says; it needs
 * no watching.
 */
const longAgoMs = 60_000;

/** Maximum number of times that a lease blocks creation but is missing when it is read. */
const mostMissing = 40;

/** External dependencies of a lease, injectable in tests. */
export interface LeaseDependencies extends Processes {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a monotonic clock. */
  monotonic(): number;
  sleep(ms: number): Promise<unknown>;
  /** Calls `tick` periodically without keeping the process alive; returns a function that stops it. */
  every(ms: number, tick: () => void): () => void;
}

export const defaultDependencies: LeaseDependencies = {
  now: Date.now,
  monotonic: () => performance.now(),
  sleep,
  pidScope: currentPidScope,
  isAlive,
  startOf,
  startTimeOf,
  every(ms, tick) {
    const timer = setInterval(tick, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};

export interface HeldLease {
  readonly lease: Lease;
  /** Stops touching the lease and removes it if it is still this trainer's. */
  release(): void;
}

export interface LeaseRequest {
  runFolder: string;
  /** Id of the run, for messages. */
  run: string;
  pid: number;
  endpoint: string;
  token: string;
  /**
   * Called once, with an explanation, if the lease is gone or held by another process: the trainer must stop writing.
   */
  onLost(sentence: string): void;
}

interface Found {
  lease: Lease | null;
  touched: number;
  /** The lease was written for another folder, of which this one is a copy: it is not held here. */
  isForeign: boolean;
}

const holder = ({ lease, isForeign }: Found, dependencies: Processes): LeaseHolder =>
  isForeign ? 'gone' : holderOf(lease, dependencies);

/** Takes the run's lease, if necessary from a dead process. Throws a UserError while another process holds it. */
export async function acquireLease(
  request: LeaseRequest,
  dependencies: LeaseDependencies = defaultDependencies,
): Promise<HeldLease> {
  const file = join(request.runFolder, runFiles.lease);
  const lease: Lease = {
    pid: request.pid,
    started: new Date(dependencies.now()).toISOString(),
    endpoint: request.endpoint,
    token: request.token,
    folder: ownFolder(request.runFolder, file),
    ...dependencies.pidScope,
    process_start: dependencies.startOf(request.pid),
  };
  const text = `${JSON.stringify(lease)}\n`;
  let seen: { found: Found; since: number } | undefined;
  for (let missing = 0; !create(file, text, dependencies);) {
    const found = find(file);
    if (found === null) {
      // It was released between the two checks, or it is a dangling link.
      if (++missing > mostMissing)
        throw new UserError(`store: ${file} can be neither read nor made: remove it, then start or resume the run`);
      await dependencies.sleep(50);
      continue;
    }
    const its = holder(found, dependencies);
    const isNew = seen?.found.touched !== found.touched || seen.found.lease?.token !== found.lease?.token;
    if (its === 'held' || (its === 'unknown' && seen !== undefined && isNew))
      throw new UserError(alreadyTrained(request.run, request.runFolder, found.lease, dependencies));
    if (seen === undefined || isNew) seen = { found, since: dependencies.monotonic() };
    const isAbandoned =
      its === 'gone' ||
      dependencies.now() - found.touched > longAgoMs ||
      dependencies.monotonic() - seen.since > leaseStaleMs;
    if (!isAbandoned) await dependencies.sleep(250);
    else if (!removeAbandoned(file, found, dependencies)) await dependencies.sleep(50);
  }

  let held = true;
  const stillOurs = (): boolean => {
    try {
      return find(file)?.lease?.token === request.token;
    } catch {
      return true; // a disk that cannot be read now does not show who holds it
    }
  };
  const stop = dependencies.every(touchMs, () => {
    if (!held) return;
    if (stillOurs()) return touch(file, dependencies);
    held = false;
    stop();
    request.onLost(lossSentence(request, file, dependencies));
  });
  return {
    lease,
    release() {
      stop();
      if (held && stillOurs()) rmSync(file, { force: true });
      held = false;
    },
  };
}

/** The lease of a run and whether its trainer lives; null if there is none. */
export function readLease(
  runFolder: string,
  dependencies: LeaseDependencies = defaultDependencies,
): { lease: Lease | null; live: boolean } | null {
  const found = find(join(runFolder, runFiles.lease));
  if (found === null) return null;
  const its = holder(found, dependencies);
  return {
    lease: found.lease,
    live: its === 'held' || (its === 'unknown' && isFresh(found.touched, dependencies.now())),
  };
}

/** Describes the process that a lease names; for another machine or container also why it counts as alive. */
function nameOf(lease: Lease | null, { pidScope }: Pick<LeaseDependencies, 'pidScope'> = defaultDependencies): string {
  if (lease === null) return 'process unknown';
  const its = pidScopeOf(lease);
  return its === undefined || isSamePidScope(its, pidScope)
    ? `process ${lease.pid}`
    : `process ${lease.pid} of ${its.host} (on another machine or in another container; its lease is still being renewed)`;
}

/** Why a trainer that lost its lease ends, and what to do. */
function lossSentence({ runFolder, run }: LeaseRequest, file: string, dependencies: LeaseDependencies): string {
  if (!existsSync(runFolder)) return folderGone({ path: runFolder, id: run });
  const other = find(file)?.lease;
  return other
    ? `run ${run}: ${nameOf(other, dependencies)} has taken over ${file}, so this trainer ended: follow the other trainer, or stop it and resume the run`
    : `run ${run}: ${file} was removed, which ends its trainer: resume the run`;
}

/** The error for a run that another process trains. */
export const alreadyTrained = (
  run: string,
  folder: string,
  lease: Lease | null,
  dependencies?: LeaseDependencies,
): string =>
  `run ${run} is already being trained by ${nameOf(lease, dependencies)}: stop it first or resume after it ended, or remove ${join(folder, runFiles.lease)} if that process is not a trainer`;

/** The error for a run folder that disappears while the run is trained or followed. */
export const folderGone = ({ path, id }: { path: string; id: string }): string =>
  `run ${id}: its folder ${path} was moved, renamed or deleted while it was being trained: put it back there, then resume the run`;

function find(file: string): Found | null {
  try {
    const touched = lstatSync(file).mtimeMs;
    const lease = parse(readRunFileSync(dirname(file), runFiles.lease).toString('utf8'));
    const isForeign = lease !== null && !isLeaseOf(lease, identityOf(dirname(file)));
    return { lease: isForeign ? null : lease, touched, isForeign };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw storeError('read', file, error);
  }
}

/** The identity of a run folder in a lease. */
function identityOf(folder: string): NonNullable<Lease['folder']> {
  return { path: realpathSync(folder), inode: String(statSync(folder, { bigint: true }).ino) };
}

function ownFolder(folder: string, file: string): NonNullable<Lease['folder']> {
  try {
    return identityOf(folder);
  } catch (error) {
    throw storeError('write', file, error);
  }
}

/** A lease truncated by a crash of its writer is held by no one. */
function parse(text: string): Lease | null {
  try {
    return leaseSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function create(file: string, text: string, dependencies: LeaseDependencies): boolean {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
    touch(file, dependencies);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    rmSync(file, { force: true });
    throw storeError('write', file, error);
  }
}

function touch(file: string, dependencies: LeaseDependencies): void {
  const seconds = dependencies.now() / 1000;
  try {
    utimesSync(file, seconds, seconds);
  } catch {
    // The next tick finds it missing.
  }
}

/** Removes an abandoned lease unless another process has replaced it; false while another process is removing it. */
function removeAbandoned(file: string, abandoned: Found, dependencies: LeaseDependencies): boolean {
  const guard = `${file}.takeover`;
  try {
    mkdirSync(guard);
    touch(guard, dependencies);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw storeError('write', guard, error);
    // The guard is held only briefly; an old one was left by a crash.
    if (!isFresh(statSync(guard, { throwIfNoEntry: false })?.mtimeMs ?? dependencies.now(), dependencies.now()))
      rmSync(guard, { recursive: true, force: true });
    return false;
  }
  try {
    const found = find(file);
    const unchanged = found && found.touched === abandoned.touched && found.lease?.token === abandoned.lease?.token;
    if (unchanged) unlinkSync(file);
    return true;
  } finally {
    rmSync(guard, { recursive: true, force: true });
  }
}

/** Returns a new token; only users who may read the lease know it. */
export const newToken = (): string => randomBytes(24).toString('hex');
