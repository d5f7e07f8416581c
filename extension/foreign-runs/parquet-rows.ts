// Reads the rows of a Parquet file in bounded parts. A file is read only when its footer is complete, because writers
// create it in place. Files of more than 2 GiB and row groups of more than 256 MiB (uncompressed) are refused.
import { parquetMetadataAsync, parquetReadObjects, type AsyncBuffer } from 'hyparquet';
import { UserError } from '../common/user-error';
import { openRegular } from '../node/bounded-file';
import { readRange } from '../node/json-lines';
import type { SourceFolder } from './source-folder';

const mostFileBytes = 2 ** 31;
const mostGroupBytes = 2 ** 28;
const mostFooterBytes = 2 ** 25;

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

/** Yields the rows of a file. Throws a UserError if the file is damaged or too large. */
export async function* parquetRows(source: SourceFolder, name: string): AsyncGenerator<Record<string, unknown>> {
  const path = source.at(name);
  const handle = await openRegular(path, source.root);
  try {
    const { size } = await handle.stat();
    const tail = await readRange(handle, Math.max(0, size - 8), 8);
    if (size > mostFileBytes || tail.length < 8 || tail.readUInt32LE(0) > Math.min(mostFooterBytes, size))
      throw new UserError(`${path} is no Parquet file of at most ${mostFileBytes} bytes: remove it`);
    const file: AsyncBuffer = {
      byteLength: size,
      async slice(start, end = size) {
        if (start < 0 || end > size || end < start) throw new RangeError('a range outside of the file');
        const bytes = await readRange(handle, start, end - start);
        return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
      },
    };
    yield* rowsOf(file, path);
  } finally {
    await handle.close();
  }
}

async function* rowsOf(file: AsyncBuffer, path: string): AsyncGenerator<Record<string, unknown>> {
  let rowStart = 0;
  try {
    const metadata = await parquetMetadataAsync(file);
    for (const { num_rows, total_byte_size, columns } of metadata.row_groups) {
      const declared = columns.reduce((sum, { meta_data }) => sum + Number(meta_data?.total_uncompressed_size ?? 0), 0);
      if (Math.max(Number(total_byte_size), declared) > mostGroupBytes || Number(num_rows) > 1_000_000)
        throw new UserError(`${path} has a row group of more than ${mostGroupBytes} bytes: write smaller row groups`);
      const rowEnd = rowStart + Number(num_rows);
      for (const row of await parquetReadObjects({ file, metadata, rowStart, rowEnd }))
        yield plain(row) as Record<string, unknown>;
      rowStart = rowEnd;
    }
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${path} cannot be read as Parquet (${(error as Error).message}): remove it`, { cause: error });
  }
}

/** A copy of a value in which 64-bit integers are numbers. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null || value instanceof Date || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}
