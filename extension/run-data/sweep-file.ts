// `.ragen/sweeps/<id>/sweep.json`: the plan of a sweep, its runs, and the points that were stopped early. `ragen sweep`
// replaces the file atomically at each change; the terminal and the Sweep page read it. States and results of runs are
// not in the file: the run folders hold them.
import { z } from 'zod';
import { isRunId } from './run-file-names';

/** Folder of a workspace's sweeps, relative to the workspace's root. */
export const sweepsFolder = '.ragen/sweeps';

/** File names in the folder of a sweep. */
export const sweepFiles = {
  index: 'sweep.json',
  /** Its presence asks the process that runs the sweep to stop the runs; the process removes the file. */
  stop: 'stop',
  comparison: 'comparison.json',
  table: 'comparison.csv',
} as const;

/** Whether a text is a valid name of a sweep's folder. */
export const isSweepId = isRunId;

/** The process that runs a sweep, identified as in a lease (lease-file.ts). */
export const sweepRunnerSchema = z.object({
  pid: z.int().positive(),
  host: z.string(),
  boot: z.string().nullable(),
  pid_namespace: z.string().nullable(),
  process_start: z.string().optional().describe('start time of the process; absent if unknown'),
});
export type SweepRunner = z.infer<typeof sweepRunnerSchema>;

/** Successive halving: at each rung, the worst points are stopped. */
export const halvingSchema = z.object({
  rungs: z.array(z.int().min(1)).describe('steps at which the points are compared, ascending'),
  factor: z.number().min(1.5).describe('the best 1 ÷ factor of the points continue after a rung'),
  least_points: z.int().min(1).describe('number of points that are never stopped'),
  metric: z.string().nullable().describe('metric that is compared; null for the validation success'),
  goal: z.enum(['max', 'min']).describe('whether a higher or a lower value is better'),
});
export type Halving = z.infer<typeof halvingSchema>;

/** Where and why a point was stopped. */
export const pointStopSchema = z.object({
  step: z.int().describe('rung of the decision'),
  value: z.number().nullable().describe('mean of the metric over the seeds; null without a value'),
  rank: z.int().min(1).describe('rank of the point at the rung, from 1'),
  of: z.int().min(1).describe('number of points that were compared'),
});
export type PointStop = z.infer<typeof pointStopSchema>;

export const sweepFileSchema = z.object({
  schema: z.literal(1),
  id: z.string(),
  file: z.string().describe('absolute path of the sweep file'),
  overrides: z.array(z.string()).describe('overrides of every run from the command line'),
  jobs: z.int().min(1).describe('greatest number of runs at a time'),
  retries: z.int().min(0).describe('how often a failed run is tried again'),
  updated: z.string().describe('ISO time'),
  runner: sweepRunnerSchema.nullable().describe('the process that runs the sweep; null after it has ended'),
  halving: halvingSchema.nullable().describe('null if no point is stopped early'),
  points: z.array(
    z.object({
      label: z.string(),
      config: z.string(),
      name: z.string().optional(),
      values: z.record(z.string(), z.unknown()).describe('values of the keys that the sweep sets, by key'),
      stopped: pointStopSchema.nullable().describe('set if the point was stopped early'),
    }),
  ),
  members: z.array(
    z.object({
      point: z.int().min(0).describe('index into `points`'),
      seed: z.int(),
      run: z.string().refine(isRunId).nullable().describe('id of the run; null before the run is created'),
      attempts: z.int().min(0).describe('how often the sweep has started or resumed the run'),
      problem: z.string().optional().describe('why the run could not be started, or how its last attempt failed'),
    }),
  ),
});
export type SweepFile = z.infer<typeof sweepFileSchema>;
