// Schemas for those parts of the Ray Jobs REST API (version 4) that are used. Fields that are not used are not checked.
import { z } from 'zod';

export const versionSchema = z.object({ version: z.string(), ray_version: z.string() });

export const jobStates = ['PENDING', 'RUNNING', 'STOPPED', 'SUCCEEDED', 'FAILED'] as const;

export const jobSchema = z.object({
  type: z.string().optional(),
  submission_id: z.string().nullable(),
  status: z.enum(jobStates),
  message: z.string().nullish(),
  driver_exit_code: z.int().nullish(),
  start_time: z.number().nullish().describe('milliseconds since 1970'),
  end_time: z.number().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  driver_agent_http_address: z.string().nullish().describe('URL of the agent of the node that runs the job'),
});
export type RayJob = z.infer<typeof jobSchema>;

export const jobsSchema = z.array(jobSchema);
export const submittedSchema = z.object({ submission_id: z.string() });
export const logsSchema = z.object({ logs: z.string() });
export const stoppedSchema = z.object({ stopped: z.boolean() });
export const deletedSchema = z.object({ deleted: z.boolean() });

/** A job to submit. */
export interface JobRequest {
  entrypoint: string;
  submission_id: string;
  metadata: Record<string, string>;
  runtime_env: { env_vars?: Record<string, string> };
  entrypoint_num_cpus: number;
  entrypoint_num_gpus: number;
  entrypoint_resources: Record<string, number>;
}

/** Returns whether a job has ended. */
export const isOver = ({ status }: Pick<RayJob, 'status'>): boolean => status !== 'PENDING' && status !== 'RUNNING';
