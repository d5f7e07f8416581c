// Submits an existing run as a Ray job. The job executes `ragen work` on a node that shares the run folder. The run's
// status is `queued` until the trainer starts. Entrypoint, metadata and environment of the job contain no secrets,
// except variables that the user passes by name.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { queuedPhase } from '../../run-data/job-record';
import type { RunStatus } from '../../run-data/run-status-file';
import { isOver } from '../../ray/ray-wire';
import type { RayJobs } from '../../ray/ray-jobs';
import { jobResources } from '../../trainer/config/schema';
import { changedConfig, onlyEvaluates } from '../../trainer/run/stored-config';
import { requireNoLinks, trustFlag } from '../../trainer/run/trusted-run';
import { alreadyTrained, LeaseWatch, readLease } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';
import { valueAt } from '../../run-data/changeable-settings';
import { TrainerEnded } from '../run-lifecycle/trainer-process';
import { RunJob } from './run-job';
import { alreadyQueued, isQueued, settleRun } from './settled-run';
import type { JobPlace } from './job-options';

/**
 * Seconds that Ray waits between SIGTERM and SIGKILL when it stops the job. Ray's default, 3 seconds, is too short for
 * writing the checkpoint of a large model. The supervisor of a job reads this variable from the job's environment.
 */
const stopWait = { RAY_JOB_STOP_WAIT_TIME_S: '300' };

/** Key of a job's metadata that contains the id of its run; jobs without this key were not submitted by `ragen`. */
export const runKey = 'ragen_run';

/**
 * Submits a run. `trainerArgs` are options of the trainer, such as --resume. Precondition: the caller created the run
 * or checked that it is trusted, as for `startTrainer`.
 * @throws UserError if a trainer serves the run, or if the run already has a queued job; TrainerEnded if Ray refuses
 * the job
 */
export async function submitRun(
  folder: RunFolder,
  workspace: string,
  trainerArgs: readonly string[],
  { jobs, cli, env }: JobPlace,
  note: (sentence: string) => void,
): Promise<RunJob> {
  if (await new LeaseWatch(folder.path).decide())
    throw new UserError(alreadyTrained(folder.id, folder.path, readLease(folder.path)?.lease ?? null));
  if (await queuedJob(folder, jobs, note)) throw alreadyQueued(folder);
  requireNoLinks(folder);
  const earlier = folder.readStatus();
  const id = `ragen-${folder.id}-${randomBytes(3).toString('hex')}`;
  const { job_cpus, job_gpus, job_resources } = z.object(jobResources).parse(folder.manifest.config.workbench);
  const work = [cli, 'work', folder.path, '--workspace', workspace, trustFlag, folder.manifestSha256, '--job', id];
  await folder.writeJob({ schema: 1, address: jobs.url, id, submitted: new Date().toISOString() });
  await folder.writeStatus(queuedStatus(folder, earlier));
  try {
    await jobs.submit({
      entrypoint: ['exec', 'node', ...[...work, ...trainerArgs].map(quoted)].join(' '),
      submission_id: id,
      metadata: { [runKey]: folder.id, ragen_folder: folder.path, ragen_name: folder.manifest.name },
      runtime_env: { env_vars: { ...stopWait, ...env } },
      entrypoint_num_cpus: job_cpus,
      entrypoint_num_gpus: job_gpus,
      entrypoint_resources: job_resources,
    });
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    await folder.writeJob(null);
    const failed: RunStatus = { ...queuedStatus(folder, null), state: 'failed', phase: 'idle', error: error.message };
    await folder.writeStatus(earlier ?? failed);
    throw new TrainerEnded(error.message);
  }
  return new RunJob(folder, jobs, id, note);
}

/**
 * Returns the job for which a run waits; null if the run has none, or if the job has ended.
 * @throws UserError if the job belongs to another cluster, which is not contacted
 */
export async function queuedJob(
  folder: RunFolder,
  jobs: RayJobs,
  note: (sentence: string) => void,
): Promise<RunJob | null> {
  const record = folder.readJob();
  if (!record || !isQueued(folder)) return null;
  if (record.address !== jobs.url) throw alreadyQueued(folder);
  const job = await jobs.get(record.id);
  if (job && !isOver(job)) return new RunJob(folder, jobs, record.id, note);
  await settleRun(folder, jobs, job);
  return null;
}

/** Returns the status of a run whose job waits for resources; `earlier` is the status before a resume. */
function queuedStatus(folder: RunFolder, earlier: RunStatus | null): RunStatus {
  const config = changedConfig(folder);
  const {
    error: _error,
    activity: _activity,
    download: _download,
    ...rest
  } = earlier ?? {
    step: 0,
    total_steps: onlyEvaluates(config) ? 0 : (valueAt(config, 'trainer.total_training_steps') as number),
    success: null,
    reward: null,
  };
  return {
    ...rest,
    state: 'starting',
    phase: queuedPhase,
    tokens_per_s: null,
    eta_s: null,
    updated: new Date().toISOString(),
  };
}

/** Quotes a word for a POSIX shell. */
const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);
