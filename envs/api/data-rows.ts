// Rows of a data set's files as plain objects: Parquet (uncompressed or Snappy, as data sets are published), JSON Lines, or JSON.
import { parquetReadObjects } from 'hyparquet';
import { existsSync, readFileSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { MissingDependency } from './environment';

export type DataRow = Record<string, unknown>;

/**
 * All rows of a file, in its order; a JSON file holds an array of them. A relative path leads from the folder that the run was started in.
 * @throws MissingDependency where there is no such file or it holds no rows; `remedy` says how to get it
 */
export async function dataRows(path: string, remedy: string): Promise<DataRow[]> {
  const file = resolve(path);
  if (!existsSync(file)) throw new MissingDependency(`finds no data at ${file}`, remedy);
  const rows = await readRows(file).catch((error: unknown) => {
    throw new MissingDependency(`cannot read the data of ${file} (${(error as Error).message})`, remedy);
  });
  if (rows.length === 0) throw new MissingDependency(`finds no rows in ${file}`, remedy);
  return rows;
}

async function readRows(file: string): Promise<DataRow[]> {
  if (extname(file) === '.parquet') {
    const { buffer, byteOffset, byteLength } = readFileSync(file);
    return parquetReadObjects({ file: buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer });
  }
  const text = readFileSync(file, 'utf8');
  if (extname(file) === '.json') {
    const rows: unknown = JSON.parse(text);
    if (!Array.isArray(rows)) throw new Error('it is no array');
    return rows as DataRow[];
  }
  return text
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line => JSON.parse(line) as DataRow);
}
