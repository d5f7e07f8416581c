// Schemas of two files of a run folder. `manifest.json` is the immutable description of the run. `labels.json` contains
// the user's labels, which override the name and tags in the manifest.
import { runColours } from './run-colour';
import { z } from 'zod';
import { isRunId } from './run-file-names';

const modelSchema = z.object({
  path: z.string(),
  sha256: z.string(),
  parameters: z.number(),
  revision: z.string().optional().describe('commit of a hub model; absent for a model in a folder'),
});

/** `manifest.json`: written once when the run is created; a resume never changes it. */
export const manifestSchema = z.object({
  schema: z.literal(1),
  id: z.string(),
  name: z.string(),
  created: z.string().describe('ISO time'),
  config_name: z.string(),
  config_file: z.string().optional().describe('absolute path; absent if the configuration was given by name'),
  overrides: z.array(z.string()),
  config: z.record(z.string(), z.unknown()).describe('resolved configuration, by RAGEN’s keys'),
  config_hash: z.string().describe('sha256 of the resolved configuration in canonical JSON'),
  seeds: z.record(z.string(), z.number()),
  versions: z.record(z.string(), z.string()),
  hardware: z.record(z.string(), z.union([z.string(), z.number()])),
  model: modelSchema,
  teacher: modelSchema
    .optional()
    .describe('the teacher of on-policy distillation; absent without a teacher on this machine'),
  environments: z.array(z.object({ tag: z.string(), name: z.string(), source: z.string(), version: z.string() })),
  sweep: z
    .object({ id: z.string(), point: z.string().describe('label of the run’s point in the sweep') })
    .optional()
    .describe('present only if the run belongs to a sweep'),
  parent: z
    .object({ run: z.string().describe('id of the run'), step: z.number().int().describe('step of its checkpoint') })
    .optional()
    .describe('present only if the run is a fork: the run and the checkpoint from which it started'),
  trainer: z
    .object({
      name: z.string().min(1).describe('name of the trainer, such as `verl`'),
      version: z.string().optional(),
      adapter: z.string().describe('id of the adapter that reads its files'),
      source: z.string().describe('absolute path of the folder or file into which the trainer writes'),
    })
    .optional()
    .describe(
      'present only if another trainer trains the run; this folder then contains converted copies of its files',
    ),
  tags: z.array(z.string()).optional(),
  sha256: z
    .string()
    .optional()
    .describe(
      'digest of the manifest without name, tags and this field, in canonical JSON; absent in runs of earlier versions',
    ),
});
export type Manifest = z.infer<typeof manifestSchema>;

/**
 * Returns the schema for the manifest in the run folder `name`. The folder name is the run id, regardless of the id in
 * the manifest. A copied or renamed folder is therefore a separate run, and a forged id cannot refer to a folder
 * outside the folder of runs.
 */
export const manifestIn = (name: string) =>
  manifestSchema
    .refine(() => isRunId(name), { error: `a run’s folder cannot be called ${JSON.stringify(name)}` })
    .transform((manifest): Manifest => ({ ...manifest, id: name }));

/**
 * `labels.json`: the user's labels, which override the manifest. Any process may replace the file; each replacement is
 * atomic.
 */
export const labelsSchema = z.object({
  schema: z.literal(1),
  name: z.string().min(1).optional(),
  tags: z.array(z.string().min(1)).optional(),
  archived: z.boolean().optional().describe('whether lists hide the run by default'),
  // An unknown colour, for example of a newer version, must not discard the other labels.
  colour: z.enum(runColours).optional().catch(undefined).describe('the colour of the run on all pages'),
});
export type Labels = z.infer<typeof labelsSchema>;
