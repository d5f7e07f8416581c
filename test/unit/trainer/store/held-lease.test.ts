// The lease decides which process may train a run: one process at a time, and a dead process's lease is taken over.
// Uses a simulated clock.
import {
  cpSync,
  existsSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { leaseStaleMs } from '../../../../extension/run-data/lease-file';
import {
  readLease,
  defaultDependencies,
  acquireLease,
  LeaseWatch,
} from '../../../../extension/trainer/store/held-lease';
import type { HeldLease, LeaseDependencies } from '../../../../extension/trainer/store/held-lease';
import {
  isAlive,
  isSamePidScope,
  startOf,
  startTimeOf,
  currentPidScope,
} from '../../../../extension/node/process-identity';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const file = (): string => join(folder(), 'lease');
const zero = Date.UTC(2026, 0, 1);

/** Simulated processes and clock. Time passes only when a process sleeps or the test advances it. */
class FakeDependencies implements LeaseDependencies {
  time = zero;
  readonly alive = new Map<number, number>();
  private readonly ticks = new Set<() => void>();
  pidScope = { host: 'here', boot: 'boot-1', pid_namespace: '1' };
  /** Offset of the wall clock from the monotonic time. */
  ahead = 0;
  now = (): number => this.time + this.ahead;
  monotonic = (): number => this.time;
  sleep = (ms: number): Promise<void> => {
    this.time += ms;
    return Promise.resolve();
  };
  isAlive = (pid: number): boolean => this.alive.has(pid);
  startOf = (pid: number): string | undefined => this.alive.get(pid)?.toString();
  startTimeOf = (pid: number): number | undefined => this.alive.get(pid);
  every(_ms: number, tick: () => void): () => void {
    this.ticks.add(tick);
    return () => this.ticks.delete(tick);
  }
  pass(seconds: number): void {
    for (let i = 0; i < seconds; i++) {
      this.time += 1000;
      for (const tick of this.ticks) tick();
    }
  }
}

const acquire = (dependencies: LeaseDependencies, pid: number, onLost = () => {}): Promise<HeldLease> =>
  acquireLease(
    { runFolder: folder(), run: 'r1', pid, endpoint: '/tmp/socket', token: `token-${pid}`, onLost },
    dependencies,
  );

test('a second process is refused while the first lives, and may continue after its release', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero).set(2, zero);
  const held = await acquire(dependencies, 1);
  expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({
    pid: 1,
    started: '2026-01-01T00:00:00.000Z',
    endpoint: '/tmp/socket',
    token: 'token-1',
    folder: { path: realpathSync(folder()), inode: String(statSync(folder(), { bigint: true }).ino) },
    process_start: String(zero),
    ...dependencies.pidScope,
  });
  if (process.platform !== 'win32') expect(statSync(file()).mode & 0o777).toBe(0o600);
  await expect(acquire(dependencies, 2)).rejects.toThrow(
    'run r1 is already being trained by process 1: stop that trainer or wait until it has ended',
  );
  expect(readLease(folder(), dependencies)).toMatchObject({ live: true, lease: { pid: 1 } });
  held.release();
  expect(existsSync(file())).toBe(false);
  expect(readLease(folder(), dependencies)).toBeNull();
  (await acquire(dependencies, 2)).release();
});

test('the lease is touched every second', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero);
  const held = await acquire(dependencies, 1);
  dependencies.pass(60);
  expect(statSync(file()).mtimeMs).toBe(dependencies.time);
  held.release();
});

/** Writes a lease of an earlier version, which lacks namespace and start time of its process. */
function leaveEarlier(pid: unknown, touched: number): void {
  writeFileSync(file(), JSON.stringify({ pid, started: new Date(zero).toISOString(), endpoint: '/s', token: 'old' }));
  utimesSync(file(), touched / 1000, touched / 1000);
}

test("a killed trainer's lease is taken over at once: the state of its process decides, not its age", async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero).set(2, zero);
  await acquire(dependencies, 1);
  dependencies.alive.delete(1);
  expect(readLease(folder(), dependencies)).toMatchObject({ live: false });
  const held = await acquire(dependencies, 2);
  expect(dependencies.time).toBe(zero);
  expect(held.lease.pid).toBe(2);
});

test.each([-86_400_000, 86_400_000])('a clock jump of %i ms has no effect', async jump => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero).set(2, zero);
  await acquire(dependencies, 1);
  dependencies.ahead = jump;
  dependencies.startTimeOf = pid => (dependencies.alive.has(pid) ? dependencies.alive.get(pid)! + jump : undefined); // like /proc/stat
  expect(readLease(folder(), dependencies)).toMatchObject({ live: true });
  await expect(acquire(dependencies, 2)).rejects.toThrow(/process 1/);
  dependencies.alive.delete(1);
  expect(readLease(folder(), dependencies)).toMatchObject({ live: false });
  expect((await acquire(dependencies, 2)).lease.pid).toBe(2);
});

test.each([
  ['another machine', { host: 'there', boot: 'boot-2', pid_namespace: '1' }],
  ['another container', { host: 'there', boot: 'boot-1', pid_namespace: '2' }],
])('a lease of %s is respected while it is touched, and taken over afterwards', async (_, pidScope) => {
  const there = new FakeDependencies();
  there.pidScope = pidScope;
  there.alive.set(1, zero);
  there.ahead = -30_000; // the other machine's clock is late
  const theirs = await acquire(there, 1);
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero).set(2, zero); // a local process with id 1 is unrelated
  const sleep = dependencies.sleep;
  dependencies.sleep = ms => {
    there.pass(1);
    return sleep(ms);
  };
  await expect(acquire(dependencies, 2)).rejects.toThrow(
    /^run r1 is already being trained by process 1 of there \(on another machine or in another container; its lease is still/,
  );
  dependencies.sleep = sleep;
  expect((await acquire(dependencies, 2)).lease.pid).toBe(2);
  expect(dependencies.time - zero).toBeGreaterThan(leaseStaleMs);
  theirs.release();
  expect(readFileSync(file(), 'utf8')).toContain('"pid":2'); // release leaves the new owner's lease
});

test.each([0, -1, 1.5, 2 ** 31, 1e300, null, '1', [1], {}])(
  'the pid %j is invalid: the lease has no owner',
  async pid => {
    const dependencies = new FakeDependencies();
    dependencies.isAlive = () => true;
    leaveEarlier(pid, zero);
    expect(readLease(folder(), dependencies)).toMatchObject({ lease: null, live: true }); // decided by its last touch
    dependencies.time += leaseStaleMs;
    expect(readLease(folder(), dependencies)).toMatchObject({ lease: null, live: false });
    expect((await acquire(dependencies, 2)).lease.pid).toBe(2);
  },
);

test('an earlier version’s lease of a dead process is taken over once it is no longer touched, also one with a future time', async () => {
  for (const touched of [zero, zero + 86_400_000, zero - 86_400_000]) {
    const dependencies = new FakeDependencies();
    leaveEarlier(1, touched);
    const held = await acquire(dependencies, 2);
    expect(dependencies.time - zero).toBeLessThan(2 * leaseStaleMs);
    held.release();
  }
});

test('an earlier version’s lease of a running process is respected', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero);
  leaveEarlier(1, zero - 86_400_000);
  expect(readLease(folder(), dependencies)).toMatchObject({ live: true, lease: { pid: 1 } });
  await expect(acquire(dependencies, 2)).rejects.toThrow(/already being trained by process 1:/);
});

test.skipIf(process.platform === 'win32')('a lease that is a dangling link is refused in a sentence', async () => {
  symlinkSync(join(folder(), 'nowhere'), file());
  await expect(acquire(new FakeDependencies(), 1)).rejects.toThrow(
    /lease exists, but can be neither read nor replaced: remove the file/,
  );
});

test('an old lease of a running process is respected, as after a laptop has slept', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero).set(2, zero);
  await acquire(dependencies, 1);
  dependencies.time += 3_600_000;
  await expect(acquire(dependencies, 2)).rejects.toThrow(/process 1/);
});

test('a lease does not belong to a new process with the same pid', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero).set(2, zero);
  await acquire(dependencies, 1);
  dependencies.alive.set(1, zero + 60_000);
  dependencies.time += 120_000;
  expect((await acquire(dependencies, 2)).lease.pid).toBe(2);
});

test('exactly one of several processes acquires an abandoned lease', async () => {
  const dependencies = new FakeDependencies();
  await acquire(dependencies, 1);
  dependencies.time += 60_000;
  for (let pid = 2; pid < 12; pid++) dependencies.alive.set(pid, zero);
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => acquire(dependencies, i + 2)));
  expect(outcomes.filter(outcome => outcome.status === 'fulfilled')).toHaveLength(1);
  expect(existsSync(`${file()}.takeover`)).toBe(false);
});

test('a lease that another process created between the check and the take-over is not replaced', async () => {
  const dependencies = new FakeDependencies();
  await acquire(dependencies, 1);
  dependencies.time += 60_000;
  const first = dependencies.isAlive;
  dependencies.isAlive = pid => {
    // While this process checks the abandoned lease, process 3 replaces the lease.
    if (pid === 1) {
      rmSync(file());
      writeFileSync(
        file(),
        JSON.stringify({ pid: 3, started: new Date(dependencies.time).toISOString(), endpoint: '', token: '3' }),
      );
      dependencies.alive.set(3, zero);
    }
    return first(pid);
  };
  await expect(acquire(dependencies, 2)).rejects.toThrow(/already being trained by process 3/);
  expect(readFileSync(file(), 'utf8')).toContain('"pid":3');
});

test('a truncated lease and a lease left by an aborted take-over have no owner', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(2, zero);
  writeFileSync(file(), '{"pid": 1');
  writeFileSync(`${file()}.takeover`, '');
  for (const name of [file(), `${file()}.takeover`]) utimesSync(name, zero / 1000 - 60, zero / 1000 - 60);
  expect((await acquire(dependencies, 2)).lease.pid).toBe(2);
});

test('the loss of the lease is reported once, and the new owner’s files are not removed', async () => {
  const dependencies = new FakeDependencies();
  let lost = 0;
  const held = await acquire(dependencies, 1, () => lost++);
  rmSync(file());
  writeFileSync(
    file(),
    JSON.stringify({ pid: 9, started: new Date(zero).toISOString(), endpoint: 'e', token: 'other' }),
  );
  dependencies.pass(3);
  expect(lost).toBe(1);
  held.release();
  expect(readFileSync(file(), 'utf8')).toContain('other');
});

test('an unwritable folder is reported with its cause', async () => {
  await expect(
    acquireLease(
      { runFolder: join(folder(), 'gone'), run: 'r1', pid: 1, endpoint: '', token: '', onLost: () => {} },
      new FakeDependencies(),
    ),
  ).rejects.toThrow(/store: cannot write .*lease \(ENOENT\): it does not exist/);
});

test('the real system information describes this process', () => {
  expect(isAlive(process.pid)).toBe(true);
  for (const pid of [2 ** 22 + 1, 0, -1, NaN, Infinity, 1.5]) expect([pid, isAlive(pid)]).toEqual([pid, false]);
  const apart = startTimeOf(process.pid)! - (Date.now() - process.uptime() * 1000);
  expect(Math.abs(apart)).toBeLessThan(2500); // the kernel's start times have whole seconds
  expect(startOf(process.pid)).toMatch(/^\d+$/);
  expect(startOf(process.pid)).toBe(startOf(process.pid));
  expect(isSamePidScope(currentPidScope, { ...currentPidScope })).toBe(true);
  const stop = defaultDependencies.every(1000, () => {});
  stop();
});

test('a copied lease has no owner, and a resume of the copy replaces it', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero).set(2, zero);
  const held = await acquire(dependencies, 1);
  const copy = join(folder(), 'copy');
  cpSync(file(), join(copy, 'lease'), { preserveTimestamps: true });
  expect(readLease(copy, dependencies)).toMatchObject({ lease: null, live: false });
  const other = await acquireLease(
    { runFolder: copy, run: 'copy', pid: 2, endpoint: '', token: 'other', onLost() {} },
    dependencies,
  );
  expect([readLease(copy, dependencies)?.lease?.pid, readLease(folder(), dependencies)?.lease?.pid]).toEqual([2, 1]);
  other.release();
  held.release();
});

test('a watch of a lease from another machine does not depend on equal clocks', async () => {
  const there = new FakeDependencies();
  there.alive.set(1, zero);
  there.pidScope = { host: 'there', boot: 'boot-2', pid_namespace: '1' };
  there.ahead = -600_000; // its clock is ten minutes behind
  const held = await acquire(there, 1);
  const here = new FakeDependencies();
  const watch = new LeaseWatch(folder(), here);
  expect(readLease(folder(), here)?.live).toBe(false);
  expect(watch.look()).toBe('undecided');
  there.pass(1);
  here.time += 1000;
  expect(watch.look()).toBe('live');
  here.time += leaseStaleMs; // no touch since
  expect(watch.look()).toBe('gone');
  there.pass(1);
  expect(watch.look()).toBe('live');
  held.release();
  expect(watch.look()).toBe('gone');
});

test('a lease that nobody touches is decided after the time in which it would be touched', async () => {
  const there = new FakeDependencies();
  there.pidScope = { host: 'there', boot: 'boot-2', pid_namespace: '1' };
  there.ahead = -600_000;
  await acquire(there, 1);
  const here = new FakeDependencies();
  expect(await new LeaseWatch(folder(), here).decide()).toBe(false);
  expect(here.time - zero).toBeGreaterThanOrEqual(leaseStaleMs);
});

test('a process of this machine is decided at once', async () => {
  const dependencies = new FakeDependencies();
  dependencies.alive.set(1, zero);
  await acquire(dependencies, 1);
  const watch = new LeaseWatch(folder(), dependencies);
  expect(watch.look()).toBe('live');
  dependencies.alive.clear();
  expect(watch.look()).toBe('gone');
});
