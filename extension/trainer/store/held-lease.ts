// The lease is a file that names the process that trains a run. This process creates the file; the creation fails if
// the file already exists. The process then touches the file every second. node/lease-liveness.ts decides whether the
// trainer is alive. A trainer on this machine is regarded as alive if its process exists. A trainer on another machine
// or in another container is regarded as alive if it keeps touching the lease. While a trainer takes over an abandoned
// lease, it holds a second file of this kind (the guard). Therefore, if several trainers try to take over the same
// lease, only one of them succeeds. The package proper-lockfile is not used: it checks the time at which a lock was
// last touched, but not whether the process that holds the lock still exists.
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
import {
  holderOf,
  isFresh,
  pidScopeOf,
  trainerLife,
  TouchWatch,
  type LeaseHolder,
  type TrainerLife,
} from '../../node/lease-liveness';
import { isAlive, isSamePidScope, startOf, startTimeOf, currentPidScope } from '../../node/process-identity';
import type { Processes } from '../../node/process-identity';
import { isLeaseOf, leaseSchema, leaseStaleMs } from '../../run-data/lease-file';
import { runFiles } from '../../run-data/run-file-names';
import type { Lease } from '../../run-data/lease-file';
import { readRunFileSync } from '../../node/read-run-file';
import { UserError } from '../../common/user-error';
import { storeError } from '../../node/files';

const touchMs = 1000;
/**
 * If a lease was last touched more than this many milliseconds ago by the local clock, it is regarded as abandoned and
 * is taken over without waiting. The number is so large that differences between the clocks of two machines do not
 * matter.
 */
const longAgoMs = 60_000;

/**
 * Maximum number of failed attempts of the following kind: creating the lease fails because the file exists, but when
 * the trainer reads the file a moment later, it is missing.
 */
const mostMissing = 40;

/** External dependencies of a lease, injectable in tests. */
export interface LeaseDependencies extends Processes {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a monotonic clock. */
  monotonic(): number;
  sleep(ms: number): Promise<unknown>;
  /**
   * Calls `tick` every `ms` milliseconds without keeping the process alive. Returns a function that stops the calls.
   */
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
  /** Stops touching the lease, and removes the file if it still belongs to this trainer. */
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
   * Called once, with one sentence, if the lease was removed or taken over by another process. The trainer must then
   * stop writing.
   */
  onLost(sentence: string): void;
}

interface Found {
  lease: Lease | null;
  touched: number;
  /**
   * True if this folder is a copy and its lease was written for the original folder; no process then trains the run in
   * this folder.
   */
  isForeign: boolean;
}

const holder = ({ lease, isForeign }: Found, dependencies: Processes): LeaseHolder =>
  isForeign ? 'gone' : holderOf(lease, dependencies);

/**
 * Acquires the run's lease; takes over the lease of a dead process. Throws a UserError if another process holds the
 * lease.
 */
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
      // The lease was released after the attempt to create it, or the lease is a link to a missing file.
      if (++missing > mostMissing)
        throw new UserError(
          `store: ${file} exists, but can be neither read nor replaced: remove the file, then start or resume the run`,
        );
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
      return true; // a read error does not prove that the lease is lost
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

export interface LeaseState {
  lease: Lease | null;
  /** Whether another trainer must not be started: the process exists, or the lease was touched recently. */
  live: boolean;
  /** State of the trainer as shown to users. */
  life: TrainerLife;
  /** Milliseconds since the last touch, by the local clock; at least 0. */
  silentMs: number;
}

/** Returns the state of the run's lease and of its trainer; null if there is no lease. */
export function readLease(runFolder: string, dependencies: LeaseDependencies = defaultDependencies): LeaseState | null {
  const found = find(join(runFolder, runFiles.lease));
  if (found === null) return null;
  const its = holder(found, dependencies);
  const age = dependencies.now() - found.touched;
  return {
    lease: found.lease,
    life: trainerLife(its, its === 'held' ? age : Math.abs(age)),
    silentMs: Math.max(0, age),
    live: its === 'held' || (its === 'unknown' && isFresh(found.touched, dependencies.now())),
  };
}

/**
 * Determines by repeated calls of `look` whether the trainer of a run is alive. Unlike a single `readLease`, the watch
 * also works if the clocks of two machines differ: a trainer on another machine is regarded as alive as long as it
 * keeps touching the lease. If the lease is not touched, the trainer is regarded as dead `leaseStaleMs` after the first
 * look.
 */
export class LeaseWatch {
  private readonly touches = new TouchWatch();
  private first: { token: string | undefined; at: number } | undefined;

  constructor(
    private readonly runFolder: string,
    private readonly dependencies: LeaseDependencies = defaultDependencies,
  ) {}

  /** Returns whether the trainer is alive, or `undecided` if `look` must be called again later to find out. */
  look(): 'live' | 'gone' | 'undecided' {
    const { now, monotonic } = this.dependencies;
    const found = find(join(this.runFolder, runFiles.lease));
    const its = found === null ? 'gone' : holder(found, this.dependencies);
    if (found === null || its === 'gone') return 'gone';
    if (its === 'held') return 'live';
    const token = found.lease?.token;
    if (this.first === undefined || this.first.token !== token) this.first = { token, at: monotonic() };
    this.touches.see(found.touched, now(), monotonic());
    if (this.touches.isFresh(monotonic())) return 'live';
    return monotonic() - this.first.at < leaseStaleMs ? 'undecided' : 'gone';
  }

  /** Resolves to whether the trainer is alive; takes up to `leaseStaleMs` for a trainer on another machine. */
  async decide(): Promise<boolean> {
    for (;;) {
      const found = this.look();
      if (found !== 'undecided') return found === 'live';
      await this.dependencies.sleep(250);
    }
  }
}

/**
 * Describes the process named in a lease. For a process on another machine or in another container, also states why the
 * process is regarded as alive.
 */
function nameOf(lease: Lease | null, { pidScope }: Pick<LeaseDependencies, 'pidScope'> = defaultDependencies): string {
  if (lease === null) return 'process unknown';
  const its = pidScopeOf(lease);
  return its === undefined || isSamePidScope(its, pidScope)
    ? `process ${lease.pid}`
    : `process ${lease.pid} of ${its.host} (on another machine or in another container; its lease is still being renewed)`;
}

/** Returns the error message of a trainer that ends because it lost its lease: cause and remedy. */
function lossSentence({ runFolder, run }: LeaseRequest, file: string, dependencies: LeaseDependencies): string {
  if (!existsSync(runFolder)) return folderGone({ path: runFolder, id: run });
  const other = find(file)?.lease;
  return other
    ? `run ${run}: ${nameOf(other, dependencies)} has taken over ${file}, so this trainer ended: follow the other trainer, or stop it and resume the run`
    : `run ${run}: ${file} was removed, which ended this trainer: resume the run`;
}

/** Returns the error message for a run that another process trains. */
export const alreadyTrained = (
  run: string,
  folder: string,
  lease: Lease | null,
  dependencies?: LeaseDependencies,
): string =>
  `run ${run} is already being trained by ${nameOf(lease, dependencies)}: stop that trainer or wait until it has ended, or remove ${join(folder, runFiles.lease)} if that process is not a trainer`;

/** Returns the error message for a run folder that disappeared while the run was trained or followed. */
export const folderGone = ({ path, id }: { path: string; id: string }): string =>
  `run ${id}: its folder ${path} was moved, renamed or deleted during the training: put the folder back there, then resume the run`;

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

/** Returns the identity of a run folder as stored in a lease. */
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

/**
 * Parses a lease. Returns null for invalid text, such as a lease truncated by a crash; no process holds such a lease.
 */
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
    // The next tick reports a missing lease.
  }
}

/**
 * Removes an abandoned lease unless another process has replaced it. Returns false if another process is removing it.
 */
function removeAbandoned(file: string, abandoned: Found, dependencies: LeaseDependencies): boolean {
  const guard = `${file}.takeover`;
  try {
    mkdirSync(guard);
    touch(guard, dependencies);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw storeError('write', guard, error);
    // A takeover takes only a short time, so an old guard was left behind by a crash.
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

/** Returns a new random token. Only users with read access to the lease file can read the token. */
export const newToken = (): string => randomBytes(24).toString('hex');
