// `status.json` of a run folder: the newest state of the run, which lists and pages show. The trainer replaces the file
// atomically after each step and at each change of state.
import { z } from 'zod';

export const runState = z.enum(['starting', 'running', 'paused', 'stopping', 'stopped', 'finished', 'failed']);
export type RunState = z.infer<typeof runState>;

/** `status.json`: the newest state, replaced atomically after each step and at each change of state. */
export const statusSchema = z.object({
  state: runState,
  step: z.number().int().describe('number of finished steps'),
  total_steps: z.number().int().describe('0 for an evaluation'),
  episodes: z
    .object({ done: z.number().int(), of: z.number().int() })
    .optional()
    .describe(
      'for evaluations only: the number of finished validation episodes, and the number of all validation episodes',
    ),
  success: z
    .number()
    .nullable()
    .describe('newest validation success, 0…1; before the first validation, the training success'),
  success_of: z.enum(['train', 'val']).optional().describe('mode of the episodes over which `success` is averaged'),
  reward: z.number().nullable().describe('mean episodic return of the newest step'),
  tokens_per_s: z.number().nullable(),
  eta_s: z.number().nullable(),
  phase: z
    .string()
    .describe(
      'one of queued, download, rollout, update, validation, checkpoint and idle; of runs of other trainers, reading and following',
    ),
  activity: z
    .string()
    .optional()
    .describe(
      'progress of the phase, such as "12 of 32 episodes, 310 turns"; connected clients receive updates more often than this file',
    ),
  left_out: z
    .array(z.string())
    .optional()
    .describe('of runs of other trainers: what is not shown, and why, one sentence each'),
  download: z
    .object({ file: z.string(), bytes: z.number(), total: z.number() })
    .optional()
    .describe(
      'set while the model is downloaded: the file in progress, and the downloaded and total bytes of all files together',
    ),
  debugging: z
    .boolean()
    .optional()
    .describe('true while a debugger may halt the environments; environment calls then have no time limit'),
  updated: z.string(),
  error: z
    .string()
    .optional()
    .describe(
      'why the run failed, why the trainer paused it, or why it returns to a checkpoint, in one sentence: place, value, remedy',
    ),
});
export type RunStatus = z.infer<typeof statusSchema>;
