// Reads the rows of a Parquet file in bounded parts. A file is read only when its footer is complete, because writers
// create it in place. Files of more than 2 GiB are refused, and row groups of more than 256 MiB (uncompressed), of
// 1,000,000 rows or of 16 million values. What a file says about its sizes is checked before it is decoded
// (parquet-pages.ts). A row of more than 16 MiB is skipped.
import {
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type AsyncBuffer,
  type FileMetaData,
  type RowGroup,
} from 'hyparquet';
import { getTreePath } from 'hyparquet/src/schema.js';
import type { FileHandle } from 'node:fs/promises';
import { UserError } from '../common/user-error';
import { openRegular } from '../node/bounded-file';
import { readRange } from '../node/json-lines';
import { requireBoundedPages, requirePlainSchema, type PageBudget } from './parquet-pages';
import type { SourceFolder } from './source-folder';

const mostFileBytes = 2 ** 31;
const mostGroupBytes = 2 ** 28;
const mostFooterBytes = 2 ** 22;
const mostGroupRows = 1_000_000;
const mostGroupValues = 2 ** 24;
/** Maximum characters of the texts of a row; each value counts as 8 more. */
const mostRowCharacters = 2 ** 24;

/** Whether a file ends with Parquet's footer. */
export async function isCompleteParquet(source: SourceFolder, name: string): Promise<boolean> {
  const handle = await openRegular(source.at(name), source.root);
  try {
    const { size } = await handle.stat();
    return size >= 12 && (await readRange(handle, size - 4, 4)).toString('latin1') === 'PAR1';
  } finally {
    await handle.close();
  }
}

/** Returns the names of a file's columns; undefined if the file cannot be read. */
export async function parquetColumns(source: SourceFolder, name: string): Promise<string[] | undefined> {
  try {
    const handle = await openRegular(source.at(name), source.root);
    try {
      const file = await bufferOf(handle, source.at(name));
      const metadata = await parquetMetadataAsync(file, { geoparquet: false });
      requirePlainSchema(metadata);
      return parquetSchema(metadata).children.map(({ element }) => element.name);
    } finally {
      await handle.close();
    }
  } catch {
    return undefined; // it is being written, or parquetRows says what is wrong with it
  }
}

/** Yields the rows of a file; null for a row that is too large. Throws a UserError if the file is damaged or too large. */
export async function* parquetRows(source: SourceFolder, name: string): AsyncGenerator<Record<string, unknown> | null> {
  const handle = await openRegular(source.at(name), source.root);
  try {
    yield* rowsOf(await bufferOf(handle, source.at(name)), source.at(name));
  } finally {
    await handle.close();
  }
}

/** Returns the file for hyparquet. Throws a UserError if it is too large, or shorter than its description. */
async function bufferOf(handle: FileHandle, path: string): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  const tail = await readRange(handle, Math.max(0, size - 8), 8);
  if (size > mostFileBytes || tail.length < 8 || tail.readUInt32LE(0) > Math.min(mostFooterBytes, size))
    throw new UserError(`${path} is no Parquet file of at most ${mostFileBytes} bytes: remove it`);
  return {
    byteLength: size,
    async slice(start, end = size) {
      if (start < 0 || end > size || end < start) throw new RangeError('a range outside of the file');
      const bytes = await readRange(handle, start, end - start);
      return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    },
  };
}

async function* rowsOf(file: AsyncBuffer, path: string): AsyncGenerator<Record<string, unknown> | null> {
  try {
    const metadata = await parquetMetadataAsync(file, { geoparquet: false });
    requirePlainSchema(metadata);
    for (const group of metadata.row_groups) {
      await requireBounded(file, metadata, group);
      const only: FileMetaData = { ...metadata, row_groups: [group], num_rows: group.num_rows };
      for (const row of await parquetReadObjects({ file, metadata: only })) yield rowIn(row);
    }
  } catch (error) {
    throw new UserError(`${path} cannot be read as Parquet (${(error as Error).message}): remove it`, { cause: error });
  }
}

/** Throws an Error if a row group, or what its pages declare, is too large. */
async function requireBounded(file: AsyncBuffer, metadata: FileMetaData, group: RowGroup): Promise<void> {
  const columns = group.columns.map(({ meta_data }) => {
    if (!meta_data) throw new Error('a column without its description');
    return meta_data;
  });
  const sum = (key: 'total_uncompressed_size' | 'total_compressed_size'): number =>
    columns.reduce((total, column) => total + Number(column[key]), 0);
  const bytes = Math.max(Number(group.total_byte_size), sum('total_uncompressed_size'), sum('total_compressed_size'));
  const rows = Number(group.num_rows);
  if (!(bytes <= mostGroupBytes)) throw new RangeError(`a row group of more than ${mostGroupBytes} bytes`);
  if (!(rows >= 0 && rows <= mostGroupRows)) throw new RangeError(`a row group of more than ${mostGroupRows} rows`);
  const budget: PageBudget = { bytes: mostGroupBytes, values: mostGroupValues };
  if (rows * columns.length > budget.values) throw new RangeError(`a row group of more than ${budget.values} values`);
  const tree = parquetSchema(metadata);
  for (const column of columns) {
    const from = Number(column.dictionary_page_offset || column.data_page_offset);
    const chunk = new Uint8Array(await file.slice(from, from + Number(column.total_compressed_size)));
    requireBoundedPages(chunk, column, getTreePath(tree, column.path_in_schema), budget);
  }
}

/** A copy of a row in which 64-bit integers are numbers; null if the row is too large or too deep. */
function rowIn(row: Record<string, unknown>): Record<string, unknown> | null {
  let left = mostRowCharacters;
  const plain = (value: unknown, depth: number): unknown => {
    left -= typeof value === 'string' ? value.length + 8 : 8;
    if (left < 0 || depth > mostDepth) throw new TooLarge();
    if (typeof value === 'bigint') return Number(value);
    if (Array.isArray(value)) return value.map(each => plain(each, depth + 1));
    if (typeof value !== 'object' || value === null || value instanceof Date || ArrayBuffer.isView(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each, depth + 1)]));
  };
  try {
    return plain(row, 0) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof TooLarge) return null;
    throw error;
  }
}

/** Maximum depth of a value, such as JSON in a column. */
const mostDepth = 100;

class TooLarge extends Error {}
