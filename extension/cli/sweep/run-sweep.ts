// Runs a sweep, up to `jobs` runs at a time: finished runs are skipped, active runs are followed, interrupted runs
// resume from their checkpoint, and missing runs are created. A failed run does not end the sweep. After a halt, no
// further run starts, and each active run finishes its current step, saves a checkpoint and stops.
import pMap from 'p-map';
import { isMadeOf } from '../../trainer/config/model-length';
import { formatShortage } from '../../run-data/memory-shortage';
import type { RunStatus } from '../../run-data/run-status-file';
import { UserError } from '../../common/user-error';
import { KeyedQueue } from '../../common/keyed-queue';
import { isUnended } from '../../run-data/run-progress';
import type { JobPlace } from '../jobs/job-options';
import { queuedJob, submitRun } from '../jobs/submit-run';
import { follow } from '../run-lifecycle/follow';
import { isRunOver } from '../run-lifecycle/run-and-follow';
import { unexplainedEnd } from '../run-lifecycle/trainer-end-message';
import { makeRun } from '../run-lifecycle/make-run';
import { startTrainer } from '../run-lifecycle/trainer-process';
import type { StepTable } from '../output/step-table';
import { LeaseWatch, readLease } from '../../trainer/store/held-lease';
import { RunFolder } from '../../trainer/store/run-folder';
import { requireTrusted } from '../../trainer/run/trusted-run';
import type { SweepMember, SweepPlan } from './sweep-plan';

export interface SweepOptions {
  workspace: string;
  /** Maximum number of concurrent runs. */
  jobs: number;
  /** Cluster that executes each run as a job; null for this machine. */
  place: JobPlace | null;
  halt: AbortSignal;
  /** Creates the table that displays a followed run. Returns null if no table is to be displayed. */
  table(): StepTable | null;
  /** Prints a line when a run starts or ends. */
  printLine(line: string): void;
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
 * Starts or continues all unfinished runs of the plan. Returns a map from the index of each run in `plan.members` to
 * its folder.
 */
export async function runSweep(plan: SweepPlan, options: SweepOptions): Promise<Map<number, RunFolder>> {
  const runs = runsOf(plan, options.workspace);
  const reported = new Set<string>();
  const note = (sentence: string): void => {
    if (!reported.has(sentence)) options.printLine(`note: ${sentence}`);
    reported.add(sentence);
  };
  const isDone = (m: number): boolean => isLive(runs.get(m)) === false && isFinished(runs.get(m));
  const left = [...plan.members.keys()].filter(m => !isDone(m));
  const done = plan.members.length - left.length;
  if (done > 0) options.printLine(`${done} of ${plan.members.length} runs are finished already`);
  const playMember = async (m: number): Promise<void> => {
    if (options.halt.aborted) return;
    const label = `[${m + 1}/${plan.members.length}] ${describe(plan, plan.members[m])}`;
    try {
      const { folder, status, lost } = await play(plan, m, runs, { ...options, note }, label);
      const success =
        typeof status?.success === 'number' ? `, validation success ${(status.success * 100).toFixed(1)} %` : '';
      options.printLine(`${label}: ${lost ?? `${status?.state} after ${status?.step} steps${success}`} (${folder.id})`);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      options.printLine(`${label}: ${error.message}`);
    }
  };
  await pMap(left, playMember, { concurrency: options.jobs });
  return runs;
}

/** Creates runs one at a time, because each creation loads the environments. */
const creation = new KeyedQueue();

/** Creates, joins or resumes one run of the plan and follows it to its end. */
async function play(
  plan: SweepPlan,
  m: number,
  runs: Map<number, RunFolder>,
  options: SweepOptions & { note(sentence: string): void },
  label: string,
): Promise<{ folder: RunFolder; status: RunStatus | null; lost?: string }> {
  const { workspace, place, halt, table, printLine, note } = options;
  const member = plan.members[m];
  const earlier = runs.get(m);
  const { configName, configFile, overrides } = member;
  const sweep = { id: plan.id, point: describe(plan, member) };
  const made = earlier
    ? { folder: earlier, notes: [] }
    : await creation.acquire(['run'], () =>
        makeRun({
          ...{ configName, configFile, overrides, workspace, sweep, tags: plan.tags },
          onShortage: memory => note(`memory: ${formatShortage(memory)}`),
        }),
      );
  for (const sentence of made.notes) note(sentence);
  const { folder } = made;
  runs.set(m, folder);
  const joined = earlier !== undefined && (await new LeaseWatch(earlier.path).decide());
  const pid = joined ? readLease(earlier.path)?.lease?.pid : undefined;
  const queued = earlier && !joined && place ? await queuedJob(earlier, place.jobs, printLine) : null;
  const isResumed = earlier !== undefined && !joined && !queued;
  if (isResumed) requireTrusted(earlier, { remedy: `read the file, then run ragen resume ${earlier.id}` });
  const args = isResumed ? ['--resume'] : [];
  printLine(`${label}: ${joined || queued ? 'joining' : isResumed ? 'resuming' : 'starting'} ${folder.id}`);
  const job = queued ?? (place && !joined ? await submitRun(folder, workspace, args, place, printLine) : null);
  if (job && !(await job.untilServed(halt))) {
    const status = folder.readStatus();
    return { folder, status, lost: status?.error };
  }
  const trainer = job ?? (joined ? { pid, ended: () => null } : await startTrainer(folder, workspace, args));
  const status = await follow(folder, table(), halt, undefined, lease => isRunOver(trainer, lease));
  const gone = status === null || isUnended(status.state);
  const lost = gone ? await unexplainedEnd(folder, trainer) : status.error;
  return { folder, status, lost };
}

const isLive = (run: RunFolder | undefined): boolean => (run ? (readLease(run.path)?.live ?? false) : false);

/** Whether a run's state is `finished`. False if the status cannot be read; `play` then reports the error. */
function isFinished(run: RunFolder | undefined): boolean {
  try {
    return run?.readStatus()?.state === 'finished';
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
}

/** Names a run by its point and, if the point has several seeds, by its seed. */
function describe(plan: SweepPlan, { point, seed }: SweepMember): string {
  const several = plan.members.filter(other => other.point === point).length > 1;
  return `${plan.points[point].label}${several ? `, seed ${seed}` : ''}`;
}
