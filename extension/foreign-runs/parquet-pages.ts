// Checks the pages of a Parquet column chunk before hyparquet decodes them, because hyparquet trusts what a page says
// about itself: a few bytes can declare gigabytes of values. Bounded are the bytes of all pages, their values, and each
// run of equal values. Encodings and types whose values may expand without such a bound are refused.
// Source: parquet-format, Encodings.md (RLE/bit-packing hybrid) and parquet.thrift; hyparquet 1.31, datapage.js.
import type { ColumnMetaData, FileMetaData, PageHeader, SchemaTree } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { decompressPage } from 'hyparquet/src/datapage.js';
import { getMaxDefinitionLevel, getMaxRepetitionLevel } from 'hyparquet/src/schema.js';
import { readVarInt } from 'hyparquet/src/thrift.js';

/** Maximum bytes of a page's header; it may contain statistics. */
const mostHeaderBytes = 2 ** 16;
/** Maximum number of elements of a schema, and of bytes of a decimal number. */
const [mostElements, mostDecimalBytes] = [4096, 32];

/** What the column chunks of a row group may still contain. */
export interface PageBudget {
  /** Bytes of uncompressed pages. */
  bytes: number;
  values: number;
}

/** Throws an Error if the schema is too large or has a type whose values may expand when they are decoded. */
export function requirePlainSchema({ schema }: FileMetaData): void {
  if (schema.length > mostElements) throw new RangeError(`more than ${mostElements} columns`);
  for (const { type, type_length, converted_type, logical_type } of schema) {
    const kind = logical_type?.type;
    if (kind === 'VARIANT' || kind === 'GEOMETRY' || kind === 'GEOGRAPHY')
      throw new Error(`a column of the type ${kind}, which is not read`);
    const bytes = type === 'BYTE_ARRAY' ? Infinity : (type_length ?? 0);
    if (converted_type === 'DECIMAL' && bytes > mostDecimalBytes)
      throw new Error(`decimal numbers of more than ${mostDecimalBytes} bytes, which are not read`);
  }
}

/** Subtracts the pages in `chunk` from the budget. Throws an Error if they exceed it or are damaged. */
export function requireBoundedPages(
  chunk: Uint8Array,
  { codec }: ColumnMetaData,
  path: SchemaTree[],
  budget: PageBudget,
): void {
  // hyparquet ignores a single byte at the end.
  for (let at = 0; at < chunk.length - 1;) {
    const reader = { view: viewOf(chunk.subarray(at, at + mostHeaderBytes)), offset: 0 };
    const header = parquetHeader(reader);
    at += reader.offset;
    const { compressed_page_size: size, uncompressed_page_size: full } = header;
    if (!isCount(size) || !isCount(full) || size > chunk.length - at)
      throw new RangeError('a page that is longer than its column');
    const page = chunk.subarray(at, at + size);
    at += size;
    budget.bytes -= full;
    budget.values -= valuesOf(header);
    if (budget.bytes < 0) throw new RangeError('pages with more bytes than a row group may have');
    if (budget.values < 0) throw new RangeError('pages with more values than a row group may have');
    if (header.type === 'DATA_PAGE') requireBoundedRuns(decompressPage(page, full, codec, undefined), header, path);
    else if (header.type === 'DATA_PAGE_V2') requireBoundedRuns2(page, header, codec, path);
  }
}

/** Returns the number of values that a page declares. */
function valuesOf({ data_page_header: v1, data_page_header_v2: v2, dictionary_page_header: dictionary }: PageHeader) {
  if ((v1 ?? v2)?.encoding === 'DELTA_BYTE_ARRAY') throw new Error('the encoding DELTA_BYTE_ARRAY, which is not read');
  const values = (v1 ?? v2 ?? dictionary)?.num_values ?? 0;
  const nulls = v2?.num_nulls ?? 0;
  if (!isCount(values) || !isCount(nulls) || nulls > values)
    throw new RangeError('a page with an invalid number of values');
  return values;
}

/** Checks a page of version 1: repetition levels, definition levels, values, each with its length before it. */
function requireBoundedRuns(page: Uint8Array, { data_page_header: head }: PageHeader, path: SchemaTree[]): void {
  if (!head) throw new Error('a page without its header');
  const reader = { view: viewOf(page), offset: 0 };
  const [repetition, definition] = [getMaxRepetitionLevel(path), getMaxDefinitionLevel(path)];
  const skipLevels = (level: number): void => {
    const length = reader.view.getUint32(reader.offset, true);
    const from = reader.offset + 4;
    requireRuns(page.subarray(from), bitsFor(level), head.num_values);
    reader.offset = from + length;
  };
  if (path.length > 1 && repetition > 0) skipLevels(repetition);
  if (definition > 0) skipLevels(definition);
  requireBoundedValues(page.subarray(reader.offset), head.encoding, path, head.num_values);
}

/** Checks a page of version 2: the levels are not compressed, and their lengths are in the header. */
function requireBoundedRuns2(
  page: Uint8Array,
  { data_page_header_v2: head, uncompressed_page_size }: PageHeader,
  codec: ColumnMetaData['codec'],
  path: SchemaTree[],
): void {
  if (!head) throw new Error('a page without its header');
  const { repetition_levels_byte_length: first, definition_levels_byte_length: second, num_values } = head;
  if (!isCount(first) || !isCount(second) || first + second > Math.min(page.length, uncompressed_page_size))
    throw new RangeError('levels that are longer than their page');
  const [repetition, definition] = [getMaxRepetitionLevel(path), getMaxDefinitionLevel(path)];
  if (repetition > 0) requireRuns(page, bitsFor(repetition), num_values);
  if (definition > 0) requireRuns(page.subarray(first), bitsFor(definition), num_values);
  const rest = page.subarray(first + second);
  const values =
    head.is_compressed === false
      ? rest
      : decompressPage(rest, uncompressed_page_size - first - second, codec, undefined);
  requireBoundedValues(values, head.encoding, path, num_values);
}

/** Checks the runs of values that are numbers of dictionary entries, or flags. */
function requireBoundedValues(bytes: Uint8Array, encoding: string, path: SchemaTree[], count: number): void {
  const isFlag = path.at(-1)?.element.type === 'BOOLEAN';
  if (isFlag && encoding === 'RLE') return requireRuns(bytes.subarray(4), 1, count);
  if (!['RLE', 'RLE_DICTIONARY', 'PLAIN_DICTIONARY'].includes(encoding) || bytes.length === 0) return;
  const [width] = bytes;
  if (width > 32) throw new RangeError('numbers of dictionary entries with more than 32 bits');
  if (width > 0) requireRuns(bytes.subarray(1), width, count);
}

/** Throws if a run of equal values is longer than the page. Bit-packed values are bounded by their bytes. */
function requireRuns(bytes: Uint8Array, width: number, count: number): void {
  const reader = { view: viewOf(bytes), offset: 0 };
  for (let seen = 0; seen < count && reader.offset < bytes.length;) {
    const header = readVarInt(reader);
    const isPacked = (header & 1) === 1;
    const length = isPacked ? (header >>> 1) * 8 : header >>> 1;
    if (!isPacked && length > count) throw new RangeError('a run of values that is longer than its page');
    reader.offset += isPacked ? (header >>> 1) * width : (width + 7) >> 3;
    seen += length;
  }
}

const bitsFor = (level: number): number => 32 - Math.clz32(level);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
