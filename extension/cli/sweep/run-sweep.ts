// Runs a sweep, up to `jobs` runs at a time: finished runs are skipped, active runs are followed, interrupted runs
// resume from their checkpoint, missing runs are created, and failed runs are tried again. A failed run does not end the
// sweep. With a halving rule, all runs train up to a rung before the worst points are stopped. After a halt, no further
// run starts, and each active run finishes its current step, saves a checkpoint and stops.
import pMap from 'p-map';
import { isMadeOf } from '../../trainer/config/model-length';
import { plannedMemory } from '../../trainer/plan/run-plan';
import { UserError } from '../../common/user-error';
import { memoryForRun } from '../../node/machine-memory';
import type { PointStop } from '../../run-data/sweep-file';
import { readLease } from '../../trainer/store/held-lease';
import { RunFolder } from '../../trainer/store/run-folder';
import { MemoryGate } from './capacity';
import { earlyStops } from './early-stops';
import { memberLabel, playMember, type MemberEnd, type MemberOptions } from './member-run';
import type { SweepPlan } from './sweep-plan';

export interface SweepOptions extends Omit<MemberOptions, 'note'> {
  /** Maximum number of concurrent runs. */
  jobs: number;
  /** How often a failed run is tried again. */
  retries: number;
}

/**
 * Returns a map from the index of each planned run in `plan.members` to the run's folder; a run without a folder is
 * absent. If several folders exist for a run, the map has the newest folder that this user's trainer signed or, if none
 * is signed, the newest folder.
 */
export function runsOf(plan: SweepPlan, workspace: string): Map<number, RunFolder> {
  const own = RunFolder.list(workspace).filter(({ manifest }) => manifest.sweep?.id === plan.id);
  const found = new Map<number, RunFolder>();
  plan.members.forEach((member, m) => {
    const runs = own.filter(({ manifest }) => isMadeOf(manifest, member.loaded));
    const run = runs.find(({ manifestCode }) => manifestCode.signed) ?? runs.at(0);
    if (run) found.set(m, run);
  });
  return found;
}

/**
 * Starts or continues all unfinished runs of the plan. Adds created runs to `runs`, which maps the index of a run in
 * `plan.members` to its folder.
 */
export async function runSweep(plan: SweepPlan, runs: Map<number, RunFolder>, options: SweepOptions): Promise<void> {
  const { halt, index, printLine } = options;
  const reported = new Set<string>();
  const note = (sentence: string): void => {
    if (!reported.has(sentence)) printLine(`note: ${sentence}`);
    reported.add(sentence);
  };
  const isDone = (m: number): boolean => !isLive(runs.get(m)) && stateOf(runs.get(m)) === 'finished';
  const done = [...plan.members.keys()].filter(isDone).length;
  if (done > 0) printLine(`${done} of ${plan.members.length} runs are finished already`);
  const admit = memoryAdmission(plan, options);
  /** Runs that have failed, or that the user has stopped: they are not started again by this command. */
  const gaveUp = new Set<number>();
  let known: ReadonlyMap<number, PointStop> = new Map();
  while (!halt.aborted) {
    const { target, stopped } = earlyStops(plan, runs, gaveUp);
    for (const line of newStops(plan, stopped, known)) printLine(line);
    known = stopped;
    index.stopped(stopped);
    const isDue = (m: number): boolean => {
      if (isDone(m) || gaveUp.has(m)) return false;
      // A run that a killed sweep has left behind may still be training.
      if (stopped.has(plan.members[m].point)) return isLive(runs.get(m));
      return stepOf(runs.get(m)) < target || isLive(runs.get(m));
    };
    const due = [...plan.members.keys()].filter(isDue);
    if (due.length === 0) break;
    const play = async (m: number): Promise<void> => {
      if (halt.aborted) return;
      const limit = stopped.get(plan.members[m].point)?.step ?? target;
      const free = await admit(m, isLive(runs.get(m)));
      try {
        const isOver = halt.aborted || (await playAndRetry(plan, m, runs, limit, { ...options, note }));
        if (!isOver) gaveUp.add(m);
      } finally {
        free();
      }
    };
    await pMap(due, play, { concurrency: options.jobs });
  }
}

/**
 * Plays one run until it is finished or has reached `limit` steps, and tries it again if it fails. Returns false if the
 * run is not to be started again.
 */
async function playAndRetry(
  plan: SweepPlan,
  m: number,
  runs: Map<number, RunFolder>,
  limit: number,
  options: SweepOptions & MemberOptions,
): Promise<boolean> {
  const { halt, index, printLine, retries } = options;
  const label = memberLabel(plan, m);
  for (let tries = 0; ; tries++) {
    let end: MemberEnd;
    try {
      end = await playMember(plan, m, runs, limit, options);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      index.failed(m, error.message);
      printLine(`${label}: ${error.message}`);
      return false; // an error before the start, for example in the configuration, would occur again
    }
    const { folder, status, lost } = end;
    const success =
      typeof status?.success === 'number' ? `, validation success ${(status.success * 100).toFixed(1)} %` : '';
    printLine(`${label}: ${lost ?? `${status?.state} after ${status?.step} steps${success}`} (${folder.id})`);
    const hasFailed = status?.state === 'failed' || lost !== undefined;
    if (!hasFailed) return status?.state === 'finished' || (status?.step ?? 0) >= limit;
    index.failed(m, lost ?? `failed after ${status?.step} steps`);
    if (halt.aborted || tries >= retries) return false;
    printLine(`${label}: trying again (${tries + 1} of ${retries})`);
  }
}

/**
 * Returns a function that waits until run `m` fits into memory next to the other runs, and returns a function that frees
 * the reservation. A live run, and a run on a cluster, reserves nothing.
 */
function memoryAdmission(
  plan: SweepPlan,
  { workspace, place }: SweepOptions,
): (m: number, isRunning: boolean) => Promise<() => void> {
  const gate = new MemoryGate(memoryForRun());
  const planned = new Map<number, Promise<number>>();
  return async (m, isRunning) => {
    if (place || isRunning) return () => undefined;
    const { point, loaded } = plan.members[m];
    const bytes =
      planned.get(point) ??
      plannedMemory(loaded.config, workspace).then(
        memory => memory?.planned ?? 0,
        (error: unknown) => {
          if (error instanceof UserError) return 0; // the start of the run reports the error
          throw error;
        },
      );
    planned.set(point, bytes);
    return gate.admit(await bytes);
  };
}

/** Returns a line for each point that was stopped since the last decision. */
const newStops = (
  { points }: SweepPlan,
  stopped: ReadonlyMap<number, PointStop>,
  known: ReadonlyMap<number, PointStop>,
): string[] =>
  [...stopped].flatMap(([p, { step, rank, of }]) =>
    known.has(p) ? [] : `halving: ${points[p].label} is stopped at step ${step}, rank ${rank} of ${of}`,
  );

const isLive = (run: RunFolder | undefined): boolean => (run ? (readLease(run.path)?.live ?? false) : false);

const stateOf = (run: RunFolder | undefined): string | undefined => statusOf(run)?.state;
const stepOf = (run: RunFolder | undefined): number => statusOf(run)?.step ?? 0;

/** Returns a run's status; null if it cannot be read: `playMember` then reports the error. */
function statusOf(run: RunFolder | undefined) {
  try {
    return run?.readStatus() ?? null;
  } catch (error) {
    if (error instanceof UserError) return null;
    throw error;
  }
}
