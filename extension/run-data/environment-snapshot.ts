// Schemas of two files in `environments/<version>/` of a run folder: the description of the stored environment code,
// and its line coverage. Source names with `..` parts are rejected: in a forged run folder, they could refer to files
// outside the folder.
import { z } from 'zod';

/** A relative name below a folder, without `.` or `..` parts. */
const sourceName = z.string().regex(/^(?!\.{1,2}(\/|$))[^\\/:]+(\/(?!\.{1,2}(\/|$))[^\\/:]+)*$/);

/** Whether a text is a valid name of a saved source, relative to `sources/`. */
export const isSourceName = (text: string): boolean => sourceName.safeParse(text).success;

/** Schema of `environments/<version>/version.json`. */
export const keptEnvironmentSchema = z.object({
  version: z.string(),
  name: z.string(),
  kept: z.string().describe('ISO time at which the code was stored'),
  root: z.string().describe('absolute path of the original folder of the sources'),
  entry: sourceName.describe('name of the source file to which env_type in the configuration refers'),
  sources: z
    .array(sourceName)
    .describe('names of the source files, relative to `root` and to `sources/`, with forward slashes'),
});
export type KeptEnvironment = z.infer<typeof keptEnvironmentSchema>;

/**
 * A line of `environments/<version>/coverage.jsonl`: how often the episodes of one step executed each line of the code.
 */
export const coverageLineSchema = z.object({
  step: z.number().int(),
  map: z.string().describe('hash of the source map; execution counts may be added only if this hash is the same'),
  files: z
    .record(z.string(), z.array(z.tuple([z.number().int(), z.number(), z.number()])))
    .describe(
      'execution counts by name of the source file. An entry describes one line of code: its 1-based number, how often its most executed part ran, and how often its least executed part ran',
    ),
});
export type CoverageLine = z.infer<typeof coverageLineSchema>;
