// Exports a run for other programs: metrics as CSV, all episodes as one JSON lines file, the resolved configuration as
// YAML, TensorBoard event files, and a notebook that reads the run. Links in the run folder are never followed, because their targets may not belong
// to the run. Must not import `vscode`.
import { once } from 'node:events';
import { createWriteStream, type ReadStream } from 'node:fs';
import { lstat, mkdir, readdir, realpath, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { finished, pipeline } from 'node:stream/promises';
import { listBounded } from '../../node/bounded-file';
import { mostEntries, openRunFile } from '../../node/read-run-file';
import { notebookText } from '../../run-data/notebook';
import { episodesFile, runFiles } from '../../run-data/run-file-names';
import type { MetricsLine } from '../../run-data/step-lines';
import { UserError } from '../../common/user-error';
import { yamlOf } from '../configuration/configuration-text';
import type { RunReader } from './run-reader';

/** Parts that can be exported without a trainer. */
const exportParts = ['metrics', 'episodes', 'configuration', 'tensorboard', 'notebook'] as const;
export type ExportPart = (typeof exportParts)[number];

/** Returns the parts that a run contains. */
export async function partsOf(reader: RunReader): Promise<ExportPart[]> {
  const has: Record<ExportPart, boolean> = {
    metrics: await isThere(join(reader.folder, runFiles.metrics)),
    episodes: (await reader.episodeSteps()).length > 0,
    configuration: reader.manifest !== undefined,
    tensorboard: await isThere(join(reader.folder, runFiles.tensorboard)),
    notebook: reader.manifest !== undefined,
  };
  return exportParts.filter(part => has[part]);
}

/**
 * Creates `target` and writes `parts` of a run into it. Throws a UserError if `target` is not empty or cannot be
 * written.
 */
export async function exportRun(reader: RunReader, parts: readonly ExportPart[], target: string): Promise<void> {
  const there = await readdir(target).catch(() => []);
  if (there.length > 0) throw new UserError(`${target} already exists: move it, or choose another folder`);
  try {
    await mkdir(target, { recursive: true });
    for (const part of parts) await writers[part](reader, target);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(
      `${target} cannot be written (${(error as Error).message}): check the free disk space and the permissions of the folder`,
    );
  }
}

const writers: Record<ExportPart, (reader: RunReader, target: string) => Promise<void>> = {
  metrics: async (reader, target) => {
    (await ownFile(reader.folder, runFiles.metrics)).destroy();
    await writeTable(join(target, 'metrics.csv'), (await reader.numbers()).metrics);
  },
  episodes: async (reader, target) => {
    const folder = join(reader.folder, runFiles.episodes);
    if (await isLink(folder)) throw notOwn(folder);
    const out = createWriteStream(join(target, 'episodes.jsonl'));
    for (const { step, mode } of await reader.episodeSteps())
      await pipeline(await ownFile(reader.folder, episodesFile(mode, step)), out, { end: false });
    out.end();
    await finished(out);
  },
  configuration: async ({ manifest }, target) => {
    if (manifest) await writeFile(join(target, 'configuration.yaml'), yamlOf(manifest.config));
  },
  notebook: async ({ folder, manifest, summary }, target) => {
    if (!manifest) return;
    const { id, name } = summary ?? manifest;
    await writeFile(join(target, `${id}.ipynb`), notebookText({ id, name, folder }));
  },
  tensorboard: async ({ folder }, target) => {
    const from = join(folder, runFiles.tensorboard);
    if (!(await lstat(from)).isDirectory()) return; // not a folder, such as a link to one
    const entries = await listBounded(from, { most: mostEntries, within: folder });
    await mkdir(join(target, runFiles.tensorboard));
    for (const { name, kind } of entries)
      if (kind === 'file') {
        const file = `${runFiles.tensorboard}/${name}`;
        await pipeline(await ownFile(folder, file), createWriteStream(join(target, file), { flags: 'wx' }));
      }
  },
};

/** Opens a regular file of a run for reading. Throws a UserError if the file or one of its parent folders is a link. */
async function ownFile(folder: string, name: string): Promise<ReadStream> {
  const path = join(folder, name);
  const [root, real, found] = await Promise.all([realpath(folder), realpath(path), lstat(path)]);
  if (found.isFile() && real === `${root}${sep}${name.replaceAll('/', sep)}`)
    return (await openRunFile(folder, name)).createReadStream(); // the stream closes the file handle at its end
  throw notOwn(path);
}

const notOwn = (path: string): UserError =>
  new UserError(
    `${path} is a link or not a regular file, so it cannot be exported: replace it with a regular file, or remove it`,
  );

const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    found => found.isSymbolicLink(),
    () => false,
  );

async function isFileOrFolder(path: string): Promise<boolean> {
  const found = await lstat(path);
  return found.isFile() || found.isDirectory();
}

/** Writes lines as CSV (RFC 4180): one column per key, in order of first occurrence, with full precision. */
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
    if (row % 500 === 499) await yieldToEventLoop();
  }
  out.end();
  await finished(out);
}

function cellOf(value: string | number | undefined): string {
  const text = value === undefined ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const isThere = (path: string): Promise<boolean> => isFileOrFolder(path).catch(() => false);
