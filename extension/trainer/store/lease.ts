// The lease says which process trains a run. It is created exclusively and touched each second. Whether its trainer lives is decided by
// protocol/lease-judgement.ts: here by the process alone, of another machine or container by the touches. Taking over happens under a
// second exclusive file, so that of two who find an abandoned lease one gets it.
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
import { holderOf, isFresh, placeOfLease, type LeaseHolder } from '../../protocol/lease-judgement';
import { isAlive, isSamePlace, startOf, startTimeOf, thisPlace } from '../../protocol/process-identity';
import type { Processes } from '../../protocol/process-identity';
import { isLeaseOf, leaseSchema, leaseStaleMs, runFiles } from '../../protocol/run-folder';
import type { Lease } from '../../protocol/run-folder';
import { readRunFileSync } from '../../protocol/run-file';
import { UserError } from '../../protocol/user-error';
import { storeError } from './files';

const touchMs = 1000;
/** A touch so long ago by this clock is old by any machine's: it is not watched for another. */
const longAgoMs = 60_000;

/** Times that a lease may be there when it is to be made and gone when it is read. */
const mostMissing = 40;

/** What a lease asks of the world; tests hand in their own. */
export interface LeaseWorld extends Processes {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a clock that is never set. */
  monotonic(): number;
  sleep(ms: number): Promise<unknown>;
  /** Calls `tick` again and again without keeping the process alive; returns what ends that. */
  every(ms: number, tick: () => void): () => void;
}

export const realWorld: LeaseWorld = {
  now: Date.now,
  monotonic: () => performance.now(),
  sleep,
  place: thisPlace,
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
  /** Stops touching the lease and removes it, if it is still ours. */
  release(): void;
}

export interface LeaseRequest {
  runFolder: string;
  /** Id of the run, for messages. */
  run: string;
  pid: number;
  endpoint: string;
  token: string;
  /** Called once if the lease is found gone or in other hands, with a sentence that says so: the trainer must stop writing. */
  onLost(sentence: string): void;
}

interface Found {
  lease: Lease | null;
  touched: number;
  /** It was written for another folder, which this one is a copy of: nobody holds it here. */
  isForeign: boolean;
}

const holder = ({ lease, isForeign }: Found, world: Processes): LeaseHolder =>
  isForeign ? 'gone' : holderOf(lease, world);

/** Takes the run's lease, over from a dead process where need be. Throws a UserError while another process holds it. */
export async function takeLease(request: LeaseRequest, world: LeaseWorld = realWorld): Promise<HeldLease> {
  const file = join(request.runFolder, runFiles.lease);
  const lease: Lease = {
    pid: request.pid,
    started: new Date(world.now()).toISOString(),
    endpoint: request.endpoint,
    token: request.token,
    folder: ownFolder(request.runFolder, file),
    ...world.place,
    process_start: world.startOf(request.pid),
  };
  const text = `${JSON.stringify(lease)}\n`;
  let seen: { found: Found; since: number } | undefined;
  for (let missing = 0; !create(file, text, world);) {
    const found = find(file);
    if (found === null) {
      // It was released between the two looks, or it is a link to nowhere.
      if (++missing > mostMissing)
        throw new UserError(`store: ${file} can be neither read nor made: remove it, then start or resume the run`);
      await world.sleep(50);
      continue;
    }
    const its = holder(found, world);
    const isNew = seen?.found.touched !== found.touched || seen.found.lease?.token !== found.lease?.token;
    if (its === 'held' || (its === 'unknown' && seen !== undefined && isNew))
      throw new UserError(alreadyTrained(request.run, request.runFolder, found.lease, world));
    if (seen === undefined || isNew) seen = { found, since: world.monotonic() };
    const isAbandoned =
      its === 'gone' || world.now() - found.touched > longAgoMs || world.monotonic() - seen.since > leaseStaleMs;
    if (!isAbandoned) await world.sleep(250);
    else if (!removeAbandoned(file, found, world)) await world.sleep(50);
  }

  let held = true;
  const stillOurs = (): boolean => {
    try {
      return find(file)?.lease?.token === request.token;
    } catch {
      return true; // a disk that cannot be read now says nothing of who holds it
    }
  };
  const stop = world.every(touchMs, () => {
    if (!held) return;
    if (stillOurs()) return touch(file, world);
    held = false;
    stop();
    request.onLost(lossSentence(request, file, world));
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

/** The lease of a run and whether its trainer lives; null when there is none. */
export function readLease(
  runFolder: string,
  world: LeaseWorld = realWorld,
): { lease: Lease | null; live: boolean } | null {
  const found = find(join(runFolder, runFiles.lease));
  if (found === null) return null;
  const its = holder(found, world);
  return {
    lease: found.lease,
    live: its === 'held' || (its === 'unknown' && isFresh(found.touched, world.now())),
  };
}

/** The process that a lease names, with where it runs and by what it counts as living where that is not here. */
export function nameOf(lease: Lease | null, { place }: Pick<LeaseWorld, 'place'> = realWorld): string {
  if (lease === null) return 'process unknown';
  const its = placeOfLease(lease);
  return its === undefined || isSamePlace(its, place)
    ? `process ${lease.pid}`
    : `process ${lease.pid} of ${its.host} (another machine or container, where only its lease tells that it lives: it is touched)`;
}

/** Why a trainer ends whose lease is not its own any more, and what to do. */
function lossSentence({ runFolder, run }: LeaseRequest, file: string, world: LeaseWorld): string {
  if (!existsSync(runFolder)) return folderGone({ path: runFolder, id: run });
  const other = find(file)?.lease;
  return other
    ? `run ${run}: ${nameOf(other, world)} holds ${file} now, so that this trainer has ended: follow that one, or stop it and resume the run`
    : `run ${run}: ${file} was removed, which ends its trainer: resume the run`;
}

/** The refusal to train a run that another process trains. */
export const alreadyTrained = (run: string, folder: string, lease: Lease | null, world?: LeaseWorld): string =>
  `run ${run} is already being trained by ${nameOf(lease, world)}: stop it first or resume after it ended, or remove ${join(folder, runFiles.lease)} where that process is no trainer`;

/** What is said of a run whose folder is not there any more while it is trained or followed. */
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

/** What a lease knows its run folder by. */
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

/** A lease cut short by a crash of its writer belongs to nobody. */
function parse(text: string): Lease | null {
  try {
    return leaseSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function create(file: string, text: string, world: LeaseWorld): boolean {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
    touch(file, world);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    rmSync(file, { force: true });
    throw storeError('write', file, error);
  }
}

function touch(file: string, world: LeaseWorld): void {
  const seconds = world.now() / 1000;
  try {
    utimesSync(file, seconds, seconds);
  } catch {
    // Found missing at the next tick.
  }
}

/** Removes an abandoned lease unless another has put its own in place; false while another process is doing so. */
function removeAbandoned(file: string, abandoned: Found, world: LeaseWorld): boolean {
  const guard = `${file}.takeover`;
  try {
    mkdirSync(guard);
    touch(guard, world);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw storeError('write', guard, error);
    // The guard is held for a moment only; one of another time was left by a crash.
    if (!isFresh(statSync(guard, { throwIfNoEntry: false })?.mtimeMs ?? world.now(), world.now()))
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
