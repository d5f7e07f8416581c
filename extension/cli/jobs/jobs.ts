// `ragen jobs`: lists the Ray jobs of runs, prints their logs, and stops them. The list shows the node of each job and
// the state of its run. Jobs of other programs are left out. If a listed job ended before its trainer started, the run
// is marked as ended as well.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { maximum } from '../../common/lists';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { isOver, type RayJob } from '../../ray/ray-wire';
import type { RayJobs } from '../../ray/ray-jobs';
import { LeaseWatch } from '../../trainer/store/held-lease';
import { RunFolder } from '../../trainer/store/run-folder';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';
import { stop } from '../runs/stop';
import { clusterOf, withOn, type OnFlags } from './job-options';
import { cancelJob, isQueued, settleRun } from './settled-run';
import { runKey } from './submit-run';

type JobsFlags = CommonFlags & OnFlags;

/** Number of jobs that are listed without --all. */
const shownJobs = 50;
/** Milliseconds between requests for the state of a stopped job, and maximum milliseconds to wait for its end. */
const [pollMs, endMs] = [500, 30_000];

const onHelp = 'address of the Ray dashboard (default: RAY_ADDRESS)';

export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('list, print and stop the Ray jobs of runs');
  const add = (name: string, description: string, isDefault = false): Command =>
    withOn(withCommon(jobs.command(name, { isDefault }).description(description)), onHelp);
  add('list', 'list the Ray jobs of runs', true)
    .option('--all', `list all jobs instead of the newest ${shownJobs}`)
    .action((flags: JobsFlags & { all?: boolean }) => answer(flags, () => list(flags)));
  add('logs', 'print the log of a job')
    .argument('<job>', 'id of the job')
    .action((id: string, flags: JobsFlags) => answer(flags, () => logs(id, flags)));
  add('stop', 'stop a job; its run gets a checkpoint of its last finished step')
    .argument('<job>', 'id of the job')
    .option('--now', 'let Ray end the job instead of asking its trainer to stop')
    .action((id: string, flags: JobsFlags & { now?: boolean }) => answer(flags, () => stopJob(id, flags)));
}

interface Row {
  job: string;
  status: RayJob['status'];
  /** Ray's message about the job's status; null if Ray gives none. */
  message: string | null;
  run: string;
  name: string;
  /** State and step of the run; null if this workspace does not contain the run. */
  state: string | null;
  step: number | null;
  folder: string;
  /** Host or address of the node that runs the job; null before the job begins. */
  node: string | null;
  /** ISO time of the submission; null if unknown. */
  submitted: string | null;
}

async function list(flags: JobsFlags & { all?: boolean }): Promise<Answer> {
  const jobs = clusterOf(flags);
  const workspace = workspaceOf(flags.workspace);
  const own = (await jobs.list())
    .filter(({ submission_id, metadata }) => submission_id !== null && metadata?.[runKey] !== undefined)
    .sort((a, b) => (b.start_time ?? 0) - (a.start_time ?? 0));
  const rows: Row[] = [];
  for (const job of flags.all ? own : own.slice(0, shownJobs)) rows.push(await rowOf(job, jobs, workspace));
  const none = `No job of ${jobs.url} belongs to a run; to submit one, run: ragen train --config-name quickstart --on ${jobs.url}`;
  return { document: rows, plainText: table(rows) || none };
}

async function rowOf(job: RayJob, jobs: RayJobs, workspace: string): Promise<Row> {
  const { submission_id, status, message, metadata, start_time, driver_agent_http_address: agent } = job;
  const id = submission_id!;
  const run = metadata![runKey];
  const folder = runOf(job, workspace);
  if (folder && isOver(job)) await settleRun(folder, jobs, job);
  const record = folder?.readJob();
  const runStatus = folder?.readStatus();
  const host = record?.id === id ? record.host : undefined;
  return {
    job: id,
    status,
    message: message ?? null,
    run,
    name: folder?.readLabels().name ?? metadata!.ragen_name ?? run,
    state: runStatus?.state ?? null,
    step: runStatus?.step ?? null,
    folder: folder?.path ?? metadata!.ragen_folder ?? '',
    node: host ?? (agent && URL.canParse(agent) ? new URL(agent).hostname : null),
    submitted: start_time ? new Date(start_time).toISOString() : null,
  };
}

/** Returns the run of a job if this workspace contains it, else undefined. The names in the metadata are untrusted. */
function runOf({ metadata }: RayJob, workspace: string): RunFolder | undefined {
  try {
    const folder = RunFolder.find(workspace, metadata?.[runKey] ?? '');
    return folder.path === metadata?.ragen_folder ? folder : undefined;
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Formats the jobs as a table with one line per job. */
function table(rows: readonly Row[]): string {
  const cells = rows.map(({ job, status, run, state, step, node, submitted }) =>
    [
      job,
      status,
      state === null ? `${run} (in another workspace)` : `${state}, step ${step}`,
      node ?? '–',
      age(submitted),
    ].map(printable),
  );
  if (cells.length === 0) return '';
  const head = ['job', 'status', 'run', 'node', 'age'];
  const widths = head.map((title, c) =>
    maximum(
      cells.map(row => row[c].length),
      title.length,
    ),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((text, c) => text.padEnd(widths[c]))
      .join('  ')
      .trimEnd();
  return [head, ...cells].map(line).join('\n');
}

/** Formats the time since a submission, such as `3 m` or `2 h 5 m`. */
function age(submitted: string | null): string {
  if (submitted === null) return '–';
  const minutes = Math.max(0, Math.floor((Date.now() - Date.parse(submitted)) / 60_000));
  return minutes < 60 ? `${minutes} m` : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

async function logs(id: string, flags: JobsFlags): Promise<Answer> {
  const jobs = clusterOf(flags);
  const log = await jobs.logs(id);
  if (log === null) throw unknownJob(jobs, id);
  return { document: { job: id, log }, plainText: log.trimEnd() };
}

/**
 * Stops a job. If the trainer of its run is alive, the trainer stops the run and may take as long as it needs to write
 * the checkpoint. Otherwise, or if --now is given, Ray stops the job.
 */
async function stopJob(id: string, flags: JobsFlags & { now?: boolean }): Promise<Answer> {
  const jobs = clusterOf(flags);
  const job = await jobs.get(id);
  if (job === null) throw unknownJob(jobs, id);
  const folder = runOf(job, workspaceOf(flags.workspace));
  const own = folder?.readJob()?.id === id ? folder : undefined;
  if (own && !isOver(job) && !flags.now && (await new LeaseWatch(own.path).decide())) {
    const { state, step } = await stop(own);
    return { document: { job: id, run: own.id, state, step }, plainText: `Run ${own.id} is ${state} at step ${step}.` };
  }
  if (own && job.status === 'PENDING' && isQueued(own) && (await cancelJob(own, jobs, id)))
    return {
      document: { job: id, run: own.id, state: 'stopped', step: own.readStatus()?.step ?? 0 },
      plainText: `Run ${own.id} is stopped; Ray ends the queued job when the job begins.`,
    };
  const stopped = !isOver(job) && (await jobs.stop(id));
  let ended: RayJob | null = job;
  for (const deadline = performance.now() + endMs; ended && !isOver(ended) && performance.now() < deadline;) {
    await sleep(pollMs);
    ended = await jobs.get(id);
  }
  if (own) await settleRun(own, jobs, ended);
  const status = ended?.status ?? 'unknown';
  return {
    document: { job: id, ...(own && { run: own.id, state: own.readStatus()?.state ?? null }), status, stopped },
    plainText: `Job ${id} ${stopped ? 'is' : 'was already'} ${status}.`,
  };
}

const unknownJob = (jobs: RayJobs, id: string): UserError =>
  new UserError(`ray: ${jobs.url} has no job ${JSON.stringify(id)}: see ragen jobs --on ${jobs.url} for the ids`);
