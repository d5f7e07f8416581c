// Notes about the settings in `output`, shown before an evaluation. Trajectories are always written as JSON lines,
// never as Python pickles.
import { basename } from 'node:path';
import type { RunConfig } from './schema';

/** Returns the trajectory file name for a configured name; the optional timestamp is not included. */
export const trajectoriesName = (filename: string): string =>
  `${basename(filename).replace(/\.(jsonl|pkl|json)$/, '')}.jsonl`;

/** Returns one note if the configuration requests a pickle, otherwise none. */
export function outputNotes({ output, trainer }: Pick<RunConfig, 'output' | 'trainer'>): string[] {
  const { format, filename } = output;
  const asked =
    format === 'pkl' ? 'output.format is pkl' : filename.endsWith('.pkl') ? `output.filename is ${filename}` : null;
  if (asked === null || !trainer.val_only) return [];
  return [
    `config: ${asked}, but pickle files are not supported, so trajectories are written as JSON lines to ${trajectoriesName(filename)}`,
  ];
}
