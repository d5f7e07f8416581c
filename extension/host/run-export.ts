// What of a run other programs can use, written into a folder: metrics as CSV, all episodes as one file of JSON lines, the resolved
// configuration as YAML, TensorBoard's event files. No `vscode` here.
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { cp, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as breathe } from 'node:timers/promises';
import { finished, pipeline } from 'node:stream/promises';
import { episodesFile, runFiles, type MetricsLine } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';
import { yamlOf } from './configuration/configuration-text';
import type { RunReader } from './run-reader';

/** What can be exported without a trainer. */
export const exportParts = ['metrics', 'episodes', 'configuration', 'tensorboard'] as const;
export type ExportPart = (typeof exportParts)[number];

/** The parts that a run has something of. */
export async function partsOf(reader: RunReader): Promise<ExportPart[]> {
  const has: Record<ExportPart, boolean> = {
    metrics: await isThere(join(reader.folder, runFiles.metrics)),
    episodes: (await reader.episodeSteps()).length > 0,
    configuration: reader.origin !== undefined,
    tensorboard: await isThere(join(reader.folder, runFiles.tensorboard)),
  };
  return exportParts.filter(part => has[part]);
}

/** Makes `target` and writes `parts` of a run into it. Throws a UserError where it is there with something in it, or cannot be written. */
export async function exportRun(reader: RunReader, parts: readonly ExportPart[], target: string): Promise<void> {
  const there = await readdir(target).catch(() => []);
  if (there.length > 0) throw new UserError(`${target} is there already: move it away, or choose another folder`);
  try {
    await mkdir(target, { recursive: true });
    for (const part of parts) await writers[part](reader, target);
  } catch (error) {
    throw new UserError(`${target} cannot be written (${(error as Error).message}): check the disk and the folder`);
  }
}

const writers: Record<ExportPart, (reader: RunReader, target: string) => Promise<void>> = {
  metrics: async (reader, target) => writeTable(join(target, 'metrics.csv'), (await reader.numbers()).metrics),
  episodes: async (reader, target) => {
    const out = createWriteStream(join(target, 'episodes.jsonl'));
    for (const { step, mode } of await reader.episodeSteps())
      await pipeline(createReadStream(join(reader.folder, episodesFile(mode, step))), out, { end: false });
    out.end();
    await finished(out);
  },
  configuration: async ({ origin }, target) => {
    if (origin) await writeFile(join(target, 'configuration.yaml'), yamlOf(origin.config));
  },
  tensorboard: ({ folder }, target) =>
    cp(join(folder, runFiles.tensorboard), join(target, runFiles.tensorboard), { recursive: true }),
};

/** Lines as comma-separated values (RFC 4180): a column a key, in the order of their first appearance, all digits of each number. */
async function writeTable(file: string, lines: readonly MetricsLine[]): Promise<void> {
  const keys = new Set<string>();
  for (const line of lines) for (const key of Object.keys(line)) keys.add(key);
  const out = createWriteStream(file);
  const write = async (cells: readonly (string | number | undefined)[]) => {
    if (!out.write(`${cells.map(cellOf).join(',')}\n`)) await once(out, 'drain');
  };
  await write([...keys]);
  for (const [row, line] of lines.entries()) {
    await write([...keys].map(key => line[key]));
    if (row % 500 === 499) await breathe();
  }
  out.end();
  await finished(out);
}

function cellOf(value: string | number | undefined): string {
  const text = value === undefined ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
