// The lease says which process trains a run. It is created exclusively and touched each second; it counts as abandoned only when
// it has not been touched for `leaseStaleMs` and its process is gone (a suspended laptop makes a live trainer's lease old, too).
// Taking over happens under a second exclusive file, so that of two who find an abandoned lease one gets it.
import { lstatSync, mkdirSync, rmSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { leaseSchema, leaseStaleMs, runFiles } from '../../protocol/run-folder';
import type { Lease } from '../../protocol/run-folder';
import { readRunFileSync } from '../../protocol/run-file';
import { UserError } from '../../protocol/user-error';
import { storeError } from './files';
import { isAlive, processStart } from './process-start';

const touchMs = 1000;
/** Clocks of process starts and of leases differ by rounding; a later process starts clearly later. */
const reuseSlackMs = 2000;

/** What a lease asks of the world; tests hand in their own. */
export interface LeaseWorld {
  now(): number;
  sleep(ms: number): Promise<unknown>;
  isAlive(pid: number): boolean;
  processStart(pid: number): number | undefined;
  /** Calls `tick` again and again without keeping the process alive; returns what ends that. */
  every(ms: number, tick: () => void): () => void;
}

export const realWorld: LeaseWorld = {
  now: Date.now,
  sleep,
  isAlive,
  processStart,
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
  /** Called once if the lease is found gone or in other hands: the trainer must stop writing. */
  onLost(): void;
}

interface Found {
  lease: Lease | null;
  touched: number;
}

/** Takes the run's lease, over from a dead process where need be. Throws a UserError while another process holds it. */
export async function takeLease(request: LeaseRequest, world: LeaseWorld = realWorld): Promise<HeldLease> {
  const file = join(request.runFolder, runFiles.lease);
  const lease: Lease = {
    pid: request.pid,
    started: new Date(world.now()).toISOString(),
    endpoint: request.endpoint,
    token: request.token,
  };
  const text = `${JSON.stringify(lease)}\n`;
  // A trainer that was killed a moment ago left a lease that is fresh but dead: wait until it is old.
  for (const deadline = world.now() + 2 * leaseStaleMs; !create(file, text, world);) {
    const found = find(file);
    if (found === null) continue;
    const state = judge(found, world);
    if (state === 'held' || world.now() > deadline)
      throw new UserError(
        `run ${request.run} is already being trained by process ${found.lease?.pid ?? 'unknown'}: stop it first or resume after it ended`,
      );
    if (state === 'dying') await world.sleep(250);
    else if (!removeAbandoned(file, found, world)) await world.sleep(50);
  }

  let held = true;
  const stillOurs = (): boolean => find(file)?.lease?.token === request.token;
  const stop = world.every(touchMs, () => {
    if (!held) return;
    if (stillOurs()) return touch(file, world);
    held = false;
    stop();
    request.onLost();
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
  return found && { lease: found.lease, live: judge(found, world) === 'held' };
}

/** `held` by a live process, `dying`: its process is gone but the lease is fresh, or `abandoned`. */
function judge({ lease, touched }: Found, world: LeaseWorld): 'held' | 'dying' | 'abandoned' {
  if (lease !== null && world.isAlive(lease.pid)) {
    const start = world.processStart(lease.pid);
    const reused = start !== undefined && start > Date.parse(lease.started) + reuseSlackMs;
    if (!reused) return 'held';
  }
  return world.now() - touched > leaseStaleMs ? 'abandoned' : 'dying';
}

function find(file: string): Found | null {
  try {
    const touched = lstatSync(file).mtimeMs;
    return { lease: parse(readRunFileSync(dirname(file), runFiles.lease).toString('utf8')), touched };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw storeError('read', file, error);
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
    // The guard is held for a moment only; an old one was left by a crash.
    const age = world.now() - (statSync(guard, { throwIfNoEntry: false })?.mtimeMs ?? world.now());
    if (age > leaseStaleMs) rmSync(guard, { recursive: true, force: true });
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
