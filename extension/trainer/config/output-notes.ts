// What an evaluation says of `output` before it starts: trajectories are JSON lines in any case, since Python's pickles are not written.
import { basename } from 'node:path';
import type { RunConfig } from './schema';

/** The file of trajectories for a name in the configuration, without the time that may be put into it. */
export const trajectoriesName = (filename: string): string =>
  `${basename(filename).replace(/\.(jsonl|pkl|json)$/, '')}.jsonl`;

/** One sentence where a pickle was asked for. */
export function outputNotes({ output, trainer }: Pick<RunConfig, 'output' | 'trainer'>): string[] {
  const { format, filename } = output;
  const asked =
    format === 'pkl' ? 'output.format is pkl' : filename.endsWith('.pkl') ? `output.filename is ${filename}` : null;
  if (asked === null || !trainer.val_only) return [];
  return [
    `config: ${asked}, Python's own format, which is not written: trajectories are JSON lines in ${trajectoriesName(filename)}`,
  ];
}
