// `status.json` of a run folder: the newest state of the run, which lists and pages show. The trainer replaces it
// atomically after each step and at each change of state.
import { z } from 'zod';

export const runState = z.enum(['starting', 'running', 'paused', 'stopping', 'stopped', 'finished', 'failed']);
export type RunState = z.infer<typeof runState>;

/** `status.json`: the newest state, replaced atomically after each step and at each change of state. */
export const statusSchema = z.object({
  state: runState,
  step: z.number().int().describe('steps finished'),
  total_steps: z.number().int().describe('0 for an evaluation'),
  episodes: z
    .object({ done: z.number().int(), of: z.number().int() })
    .optional()
    .describe('of an evaluation: validation episodes that are finished, and all'),
  success: z.number().nullable().describe('newest validation success, else training success, 0…1'),
  success_of: z.enum(['train', 'val']).optional().describe('whether the success is of training or validation'),
  reward: z.number().nullable().describe('mean episodic return of the newest step'),
  tokens_per_s: z.number().nullable(),
  eta_s: z.number().nullable(),
  phase: z.string().describe('download, rollout, update, validation, checkpoint, idle'),
  activity: z
    .string()
    .optional()
    .describe(
      'progress of the phase, such as "12 of 32 episodes, 310 turns"; sent to clients more often than written to the file',
    ),
  download: z
    .object({ file: z.string(), bytes: z.number(), total: z.number() })
    .optional()
    .describe('while the model is downloaded: the current file, and the bytes of all files downloaded and in total'),
  debugging: z.boolean().optional().describe('a debugger may halt the environments: their steps have no time limit'),
  updated: z.string(),
  error: z
    .string()
    .optional()
    .describe('why it failed, or why it is paused where it paused by itself; one sentence: place, value, remedy'),
});
export type RunStatus = z.infer<typeof statusSchema>;
