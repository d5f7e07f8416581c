// Follows the files of another trainer: reads what was added, and updates the run folder. Metrics come first, then the
// rollouts of the newest step. The folder is listed again at intervals, because watchers miss changes on network drives
// and in containers; changes of the metrics' folders are noticed at once where the system reports them.
import { dirname, join } from 'node:path';
import { watch, type FSWatcher } from 'chokidar';
import { UserError } from '../common/user-error';
import { acquireLease, newToken, readLease } from '../trainer/store/held-lease';
import type { RunFolder } from '../trainer/store/run-folder';
import type { ForeignRun } from './adapter';
import { AttachedRun, type FollowPhase } from './attached-run';
import type { SourceFolder } from './source-folder';

/** Milliseconds between two listings; longer if a listing takes long. */
const pollMs = 1000;
const longestPollMs = 30_000;
/** Milliseconds for which rollouts are converted between two looks at the metrics. */
const sliceMs = 1000;
/** Minimum milliseconds between two updates of the status while rollouts are converted. */
const statusMs = 250;
/** Minimum milliseconds between two updates of derived metrics while steps wait to be converted. */
const derivedMs = 20_000;
/** A run is called silent after this many times the duration of a step, and at least this many milliseconds. */
const [silentSteps, leastSilentMs] = [3, 120_000];

/** The right of one process to follow a run. */
export interface FollowLease {
  /** Aborted if another process has taken over; its reason is a UserError. */
  lost: AbortSignal;
  release(): void;
}

/** Acquires the lease of a run. Throws a UserError if another process follows it. */
export async function leaseOf(folder: RunFolder): Promise<FollowLease> {
  const lost = new AbortController();
  const lease = await acquireLease({
    runFolder: folder.path,
    run: folder.id,
    pid: process.pid,
    endpoint: '',
    token: newToken(),
    onLost: sentence => lost.abort(new UserError(sentence)),
  });
  return { lost: lost.signal, release: () => lease.release() };
}

export interface FollowOptions {
  /** Maximum bytes of the converted episodes. */
  episodeBytes: number;
  /** Read the files once, instead of until they no longer change. */
  once: boolean;
  signal: AbortSignal;
  /** The run's lease; acquired by default. It is released at the end. */
  lease?: FollowLease | undefined;
  /** Called when the metrics were read for the first time, and whenever something has changed. */
  onChange(run: AttachedRun, isFirst: boolean): void;
}

/** Whether another process follows the run. */
export const isFollowed = (folder: RunFolder): boolean => readLease(folder.path)?.live === true;

/**
 * Follows a run until it has ended, `signal` is aborted or, with `once`, everything is read. An abort takes effect within
 * a file of metrics and within a step; the run then contains complete steps only, or the beginning of its newest step.
 * Returns whether everything was read. Throws a UserError if another process follows the run or the files cannot be read.
 */
export async function followRun(
  folder: RunFolder,
  source: SourceFolder,
  run: ForeignRun,
  { episodeBytes, once, signal, onChange, ...options }: FollowOptions,
): Promise<boolean> {
  const lease = options.lease ?? (await leaseOf(folder));
  const { lost } = lease;
  const attached = AttachedRun.open(folder, source, run, episodeBytes);
  const alarm = new Alarm();
  const stop = (): void => alarm.ring();
  const stopped = AbortSignal.any([signal, lost]);
  for (const each of [signal, lost]) each.addEventListener('abort', stop, { once: true });
  const watcher = once ? undefined : watchMetrics(source, run, stop);
  let [ended, isComplete] = [false, false];
  /** The status' phase and activity. */
  let shown: [FollowPhase, string?] = ['reading'];
  let derivedAt = performance.now();
  try {
    for (let isFirst = true; !signal.aborted && !lost.aborted; isFirst = false) {
      const began = performance.now();
      isComplete = false;
      if (!isFirst) {
        await source.refresh();
        await run.refresh?.();
      }
      const walkMs = performance.now() - began;
      const grown = await attached.updateMetrics(stopped);
      ended = (await run.ended?.()) ?? hasAllSteps(attached, run);
      await attached.updateStatus('running', ...shown);
      if (isFirst) onChange(attached, true);
      const before = attached.episodes.steps;
      let statusAt = -Infinity;
      const onStep = async (step: number): Promise<void> => {
        shown = ['reading', `rollouts of step ${step}`];
        if (performance.now() - statusAt < statusMs) return; // a run may have many small steps
        await attached.updateStatus('running', ...shown);
        statusAt = performance.now();
      };
      const { waiting, isBusy, isCaughtUp } = await convert(attached, run, { once, signal: stopped, onStep });
      isComplete = waiting === 0;
      if (!isBusy) shown = ['following', silence(source, attached, run)];
      await attached.updateStatus(ended && isComplete ? 'finished' : 'running', ...shown);
      // Each change of earlier rows makes the pages read all rows again, so it is rare while steps are converted.
      const isDue = isCaughtUp || performance.now() - derivedAt > derivedMs;
      if (isDue) derivedAt = performance.now();
      const derived = isDue && (await attached.updateDerived());
      if (isCaughtUp) attached.updateEvents();
      if (!isFirst && (grown || derived || attached.episodes.steps !== before)) onChange(attached, false);
      if (waiting === 0 && (once || ended)) break;
      const wait = waiting > 0 && !isFirst ? pollMs / 4 : Math.min(longestPollMs, Math.max(pollMs, 10 * walkMs));
      await alarm.wait(wait);
    }
    if (lost.aborted) throw lost.reason;
    return isComplete;
  } catch (error) {
    if (signal.aborted && error === signal.reason) return false;
    if (error instanceof UserError && !lost.aborted) attached.warn(error.message); // shown on the Log page
    throw error;
  } finally {
    for (const each of [signal, lost]) each.removeEventListener('abort', stop);
    await watcher?.close();
    if (!lost.aborted) {
      await attached.updateStatus(ended && isComplete ? 'finished' : 'stopped');
      await attached.close();
    }
    lease.release();
  }
}

interface Slice {
  once: boolean;
  signal: AbortSignal;
  onStep(step: number): Promise<void>;
}

/**
 * Converts rollouts for a while. Returns the number of steps that remain, whether the time was too short for them, and
 * whether all of them are steps whose files may still be written, as the newest step of a trainer that appends rollouts.
 */
async function convert(
  attached: AttachedRun,
  run: ForeignRun,
  { once, ...options }: Slice,
): Promise<{ waiting: number; isBusy: boolean; isCaughtUp: boolean }> {
  const began = performance.now();
  const until = (): boolean => !once && performance.now() - began > sliceMs;
  const { units, more = false, problems = [] } = await run.rollouts();
  attached.episodes.unread = problems;
  const waiting = await attached.episodes.convert(units, { until, ...options });
  await attached.episodes.save();
  return {
    waiting: waiting + Number(more),
    isBusy: more || (waiting > 0 && until()),
    isCaughtUp: !more && waiting === attached.episodes.young,
  };
}

/** Whether the last planned step is there. */
const hasAllSteps = ({ table }: AttachedRun, { totalSteps }: ForeignRun): boolean =>
  totalSteps > 0 && (table.steps.at(-1) ?? 0) >= totalSteps;

/** Returns since when no file of the run has changed, if this is long; no trainer reports that it has ended. */
function silence(source: SourceFolder, { table }: AttachedRun, { stepSeconds = [] }: ForeignRun): string | undefined {
  const changed = source.files.reduce((newest, name) => Math.max(newest, source.stat(name)?.mtimeMs ?? 0), 0);
  const step = (table.newest(stepSeconds) ?? 0) * 1000;
  const isSilent = changed > 0 && Date.now() - changed > Math.max(leastSilentMs, silentSteps * step);
  return isSilent
    ? `no new data since ${new Date(changed).toISOString().slice(0, 16).replace('T', ' ')} UTC`
    : undefined;
}

function watchMetrics(source: SourceFolder, run: ForeignRun, onChange: () => void): FSWatcher {
  const names = run.metrics.map(({ name }) => name).filter(name => source.stat(name) !== undefined);
  const folders = new Set(names.map(name => dirname(join(source.root, name))));
  const watcher = watch([...folders], { ignoreInitial: true, depth: 0, followSymlinks: false });
  watcher.on('all', onChange);
  watcher.on('error', () => undefined); // the next listing shows the change
  return watcher;
}

/** Waits for a time that a call of `ring` shortens. */
class Alarm {
  private wake: (() => void) | undefined;
  private rung = false;

  ring(): void {
    this.rung = true;
    this.wake?.();
  }

  async wait(ms: number): Promise<void> {
    if (!this.rung)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, ms);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    this.rung = false;
  }
}
