// One run of a sweep: creates it, joins its trainer, or resumes it, and follows it to its end or to the step at which
// the sweep pauses it.
import { formatShortage } from '../../run-data/memory-shortage';
import { isUnended } from '../../run-data/run-progress';
import type { RunStatus } from '../../run-data/run-status-file';
import { KeyedQueue } from '../../common/keyed-queue';
import { LeaseWatch, readLease } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';
import { requireTrusted } from '../../trainer/run/trusted-run';
import type { JobPlace } from '../jobs/job-options';
import { queuedJob, submitRun } from '../jobs/submit-run';
import type { StepTable } from '../output/step-table';
import { follow } from '../run-lifecycle/follow';
import { makeRun } from '../run-lifecycle/make-run';
import { isRunOver } from '../run-lifecycle/run-and-follow';
import { unexplainedEnd } from '../run-lifecycle/trainer-end-message';
import { startTrainer } from '../run-lifecycle/trainer-process';
import type { SweepIndex } from './sweep-index';
import type { SweepMember, SweepPlan } from './sweep-plan';

export interface MemberOptions {
  workspace: string;
  /** Cluster that executes each run as a job; null for this machine. */
  place: JobPlace | null;
  halt: AbortSignal;
  index: SweepIndex;
  /** Creates the table that displays a followed run. Returns null if no table is to be displayed. */
  table(): StepTable | null;
  /** Prints a line when a run starts or ends. */
  printLine(line: string): void;
  /** Prints a sentence that several runs may repeat. */
  note(sentence: string): void;
}

/** How a run ended. `lost` says why it ended before its end, in one sentence. */
export interface MemberEnd {
  folder: RunFolder;
  status: RunStatus | null;
  lost?: string;
}

/** Creates runs one at a time, because each creation loads the environments. */
const creation = new KeyedQueue();

/**
 * Creates, joins or resumes run `m` of the plan and follows it. Once the run has finished `target` steps, it is asked to
 * stop with a checkpoint. Adds a created run to `runs`. @throws UserError if the run cannot be started
 */
export async function playMember(
  plan: SweepPlan,
  m: number,
  runs: Map<number, RunFolder>,
  target: number,
  { workspace, place, halt, index, table, printLine, note }: MemberOptions,
): Promise<MemberEnd> {
  const member = plan.members[m];
  const label = memberLabel(plan, m);
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
  if (joined || queued) index.joined(m, folder.id);
  else index.started(m, folder.id);
  const job = queued ?? (place && !joined ? await submitRun(folder, workspace, args, place, printLine) : null);
  if (job && !(await job.untilServed(halt))) {
    const status = folder.readStatus();
    return { folder, status, lost: status?.error };
  }
  const trainer = job ?? (joined ? { pid, ended: () => null } : await startTrainer(folder, workspace, args));
  const pause = new AbortController();
  const status = await follow(folder, table(), AbortSignal.any([halt, pause.signal]), undefined, lease => {
    if ((folder.readStatus()?.step ?? 0) >= target) pause.abort();
    return isRunOver(trainer, lease);
  });
  const gone = status === null || isUnended(status.state);
  const lost = gone ? await unexplainedEnd(folder, trainer) : status.error;
  return { folder, status, lost };
}

/** Returns the label of a run in the output, such as `[2/8] lr=0.001, seed 20`. */
export const memberLabel = (plan: SweepPlan, m: number): string =>
  `[${m + 1}/${plan.members.length}] ${describe(plan, plan.members[m])}`;

/** Names a run by its point and, if the point has several seeds, by its seed. */
function describe(plan: SweepPlan, { point, seed }: SweepMember): string {
  const several = plan.members.filter(other => other.point === point).length > 1;
  return `${plan.points[point].label}${several ? `, seed ${seed}` : ''}`;
}
