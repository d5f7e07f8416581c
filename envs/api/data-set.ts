// A published data set: one file or a folder of Parquet, JSON Lines or JSON files. Rows are read on demand, so a data
// set may be larger than memory. In a folder, the Hugging Face Hub's naming scheme
// (`main/train-00000-of-00001.parquet`) identifies the files of the requested configuration (here `main`) and the
// requested split (here `train`). If a folder holds several formats, Parquet is preferred to JSON Lines, and JSON Lines
// to JSON.
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { closeSync, existsSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve, sep } from 'node:path';
import { types } from 'node:util';
import * as zlib from 'node:zlib';
import { MissingDependency } from './environment';
import { openRegularFile } from './regular-file';
import { rowExtents } from './row-extents';

export type Row = Record<string, unknown>;

export interface DataSet {
  readonly length: number;
  /** Returns the row at an index in [0, length). Integers of any width are returned as numbers. */
  row(index: number): Promise<Row>;
}

export interface DataSetOptions {
  /**
   * Name of a configuration: a folder within the data set, such as `main`. If the data set has no such folder, all
   * files are used.
   */
  configuration?: string;
  /** Name of a split, such as `train`. If the paths of the files name no split at all, all files are used. */
  split?: string;
  /** What the user can do to get the data, as an imperative. Error messages end with this text. */
  remedy: string;
}

const forms = ['.parquet', '.jsonl', '.json'];
/** Metadata files in a data set's folder; they hold no rows. */
const notRows = new Set(['dataset_infos.json', 'download.json', 'state.json', 'dataset_info.json']);
const opened = new Map<string, Promise<DataSet>>();

/**
 * Opens a data set. All episodes that read the same data set share one opened instance. A relative path is resolved
 * against the working directory of the run.
 * @throws MissingDependency if there is no data set or a file cannot be read
 */
export function openDataSet(path: string, options: DataSetOptions): Promise<DataSet> {
  const key = JSON.stringify([resolve(path), options.configuration, options.split]);
  const known = opened.get(key);
  if (known) return known;
  const opening = open(resolve(path), options);
  opened.set(key, opening);
  opening.catch(() => opened.delete(key)); // after an error, the next call tries again
  return opening;
}

/**
 * Maximum size in bytes of a data set that is opened when the environment is loaded. A larger data set is opened at the
 * first episode.
 */
const smallBytes = 1 << 26;
/**
 * Maximum time in milliseconds for opening a large data set. Environments that read data sets return this value from
 * `patience`.
 */
export const openingPatience = 120_000;

/**
 * Checks that a data set exists; called when an environment is loaded. If the data set has at most `smallBytes`, opens
 * and returns it, so that the caller can validate its columns. For a larger data set, returns undefined.
 * @throws MissingDependency in the same cases as `openDataSet`
 */
export async function lookForDataSet(path: string, options: DataSetOptions): Promise<DataSet | undefined> {
  const bytes = presentFiles(resolve(path), options).reduce((sum, file) => sum + statSync(file).size, 0);
  return bytes <= smallBytes ? openDataSet(path, options) : undefined;
}

/**
 * Returns the data set's files of the requested configuration and split.
 * @throws MissingDependency if no file exists, or if a file has an unsupported format
 */
function presentFiles(path: string, options: DataSetOptions): string[] {
  if (!existsSync(path)) throw new MissingDependency(`needs a data set, but ${path} does not exist`, options.remedy);
  const files = statSync(path).isDirectory() ? filesOf(path, options) : [path];
  const other = files.find(file => !forms.includes(extname(file)));
  if (other !== undefined)
    throw new MissingDependency(`cannot read ${other}, whose format is not one of ${forms.join(', ')}`, options.remedy);
  return files;
}

async function open(path: string, options: DataSetOptions): Promise<DataSet> {
  const parts: DataSet[] = [];
  for (const file of presentFiles(path, options)) {
    try {
      parts.push(extname(file) === '.parquet' ? await openParquet(file) : openJson(file));
    } catch (error) {
      throw new MissingDependency(`cannot read the data of ${file} (${(error as Error).message})`, options.remedy);
    }
  }
  const whole = joined(parts);
  if (whole.length === 0)
    throw new MissingDependency(
      `needs a data set, but ${path} has no rows${options.split ? ` of the split "${options.split}"` : ''}`,
      options.remedy,
    );
  return whole;
}

/** Returns the files in a folder that belong to the requested configuration and split, sorted by path. */
function filesOf(folder: string, { configuration, split }: DataSetOptions): string[] {
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => join(folder, name))
    .filter(file => forms.includes(extname(file)) && !notRows.has(basename(file)))
    .sort();
  const form = forms.find(end => all.some(file => extname(file) === end));
  const files = all.filter(file => extname(file) === form);
  const folders = (file: string) => dirname(relative(folder, file)).split(sep);
  const own = configuration === undefined ? [] : files.filter(file => folders(file).includes(configuration));
  const configured = own.length > 0 ? own : files;
  const splitOf = (file: string) =>
    [basename(file), ...folders(file)].map(name => /^(train|test|validation|val|dev)\b/.exec(name)?.[1]).find(Boolean);
  if (split === undefined || configured.every(file => splitOf(file) === undefined)) return configured;
  return configured.filter(file => splitOf(file) === split);
}

function joined(parts: readonly DataSet[]): DataSet {
  const starts: number[] = [];
  let length = 0;
  for (const part of parts) {
    starts.push(length);
    length += part.length;
  }
  return {
    length,
    row(index) {
      const at = starts.findLastIndex(start => start <= index);
      return parts[at].row(index - starts[at]);
    },
  };
}

function openJson(file: string): DataSet {
  const { starts, ends } = rowExtents(file);
  return {
    length: starts.length,
    row(index) {
      const descriptor = openRegularFile(file);
      try {
        const bytes = Buffer.alloc(ends[index] - starts[index]);
        readSync(descriptor, bytes, 0, bytes.length, starts[index]);
        return Promise.resolve(JSON.parse(bytes.toString('utf8')) as Row);
      } finally {
        closeSync(descriptor);
      }
    },
  };
}

/** Maximum number of decoded rows in the cache. The row group in use stays in the cache, whatever its size. */
const keptRows = 100_000;
/**
 * Undefined in versions of Node.js before 22.15. With such a version, hyparquet throws an error that names the missing
 * codec if a file needs this function.
 */
const { zstdDecompressSync } = zlib as { zstdDecompressSync?: (input: Uint8Array) => Uint8Array };
const compressors = {
  GZIP: (input: Uint8Array) => zlib.gunzipSync(input),
  BROTLI: (input: Uint8Array) => zlib.brotliDecompressSync(input),
  ...(zstdDecompressSync && { ZSTD: zstdDecompressSync }),
};

async function openParquet(path: string): Promise<DataSet> {
  closeSync(openRegularFile(path));
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  const ends: number[] = [];
  for (const { num_rows } of metadata.row_groups) ends.push((ends.at(-1) ?? 0) + Number(num_rows));
  const groups = new Map<number, Promise<Row[]>>();
  const startOf = (group: number) => (group === 0 ? 0 : ends[group - 1]);
  return {
    length: ends.at(-1) ?? 0,
    async row(index) {
      const group = ends.findIndex(end => index < end);
      const rowStart = startOf(group);
      let rows = groups.get(group);
      if (!rows) {
        rows = parquetReadObjects({ file, metadata, rowStart, rowEnd: ends[group], compressors });
        groups.set(group, rows);
        let kept = [...groups.keys()].reduce((sum, key) => sum + ends[key] - startOf(key), 0);
        for (const key of groups.keys()) {
          if (kept <= keptRows || key === group) break;
          kept -= ends[key] - startOf(key);
          groups.delete(key);
        }
      }
      return withNumbers((await rows)[index - rowStart]) as Row;
    },
  };
}

/** A copy of the value in which every 64-bit integer is a number. */
function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (types.isTypedArray(value) && !(value instanceof Uint8Array))
    return Array.from<number | bigint, number>(value, Number);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withNumbers(item)]));
}
