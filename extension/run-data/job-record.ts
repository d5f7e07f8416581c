// `job.json` of a run folder: the Ray job that runs the run's trainer. The submitter writes the file before it submits
// the job, and the worker adds its host name when the job begins. The record is untrusted like every file of a run
// folder: an address in it is contacted only if the user names the same address.
import { z } from 'zod';
import type { RunStatus } from './run-status-file';

export const jobRecordSchema = z.object({
  schema: z.literal(1),
  address: z.string().max(2048).describe('URL of the Ray dashboard'),
  id: z.string().max(256).describe('submission id of the job'),
  submitted: z.string().describe('ISO time'),
  host: z.string().max(256).optional().describe('host on which the job runs or ran; absent before it begins'),
});
export type JobRecord = z.infer<typeof jobRecordSchema>;

/** Value of `phase` in the status of a run whose job waits for resources. */
export const queuedPhase = 'queued';

/** Whether a run waits for its job: the job was submitted, and no trainer has written a status since. */
export const isQueuedStatus = ({ state, phase }: Pick<RunStatus, 'state' | 'phase'>): boolean =>
  state === 'starting' && phase === queuedPhase;

/** Returns the host on which a job runs or ran; before the job begins, the host in the cluster's address. */
export const hostOfJob = ({ host, address }: Pick<JobRecord, 'host' | 'address'>): string =>
  host ?? (/^https?:\/\/(\[[^\]]*\]|[^:/]+)/.exec(address)?.[1] || address);
