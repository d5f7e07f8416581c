// `job.json` of a run folder: the Ray job that runs the run's trainer. The submitter writes the file before it submits
// the job, and the worker adds its host name when the job begins. The record is untrusted like every file of a run
// folder: an address in it is contacted only if the user names the same address.
import { z } from 'zod';

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
