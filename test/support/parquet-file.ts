// Writes Parquet files byte by byte, so that tests can make files that state wrong sizes. The headers are in Thrift's
// compact protocol (parquet-format, parquet.thrift); only what the tests need.

/** A value of Thrift's compact protocol: its type and bytes. */
export interface Part {
  type: number;
  bytes: Buffer;
}

export function varint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(value);
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

const zigzag = (value: number): bigint => (BigInt(value) << 1n) ^ (BigInt(value) >> 63n);
export const i32 = (value: number): Part => ({ type: 5, bytes: varint(zigzag(value)) });
export const i64 = (value: number): Part => ({ type: 6, bytes: varint(zigzag(value)) });
export const text = (value: string): Part => ({
  type: 8,
  bytes: Buffer.concat([varint(Buffer.byteLength(value)), Buffer.from(value)]),
});
export const list = (items: readonly Part[]): Part => ({
  type: 9,
  bytes: Buffer.concat([
    Buffer.from([0xf0 | (items[0]?.type ?? 5)]),
    varint(items.length),
    ...items.map(({ bytes }) => bytes),
  ]),
});

/** Fields by their numbers, in ascending order. */
export function struct(fields: Readonly<Record<number, Part | undefined>>): Part {
  let last = 0;
  const parts = Object.entries(fields).map(([key, part]) => {
    if (!part) return Buffer.alloc(0);
    const { type, bytes } = part;
    const delta = Number(key) - last;
    last = Number(key);
    return Buffer.concat([Buffer.from([(delta << 4) | type]), bytes]);
  });
  return { type: 12, bytes: Buffer.concat([...parts, Buffer.from([0])]) };
}

/** Texts in the encoding PLAIN. */
export const plainTexts = (texts: readonly string[]): Buffer =>
  Buffer.concat(
    texts.map(each => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(each));
      return Buffer.concat([length, Buffer.from(each)]);
    }),
  );

/** A run of `count` equal values of at most 8 bits in the RLE hybrid. */
export const runOf = (count: number, value: number): Buffer =>
  Buffer.concat([varint(BigInt(count) << 1n), Buffer.from([value])]);

/** Bytes with their length before them, as definition levels of version 1. */
export function withLength(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

interface PageOptions {
  /** 0: PLAIN, 8: RLE_DICTIONARY. */
  encoding?: number;
  /** What the header states; the true sizes by default. */
  full?: number;
  compressed?: number;
}

/** A data page of version 1. */
export function dataPage(body: Buffer, values: number, { encoding = 0, full, compressed }: PageOptions = {}): Buffer {
  const head = struct({ 1: i32(values), 2: i32(encoding), 3: i32(3), 4: i32(3) });
  const sizes = { 1: i32(0), 2: i32(full ?? body.length), 3: i32(compressed ?? body.length) };
  return Buffer.concat([struct({ ...sizes, 5: head }).bytes, body]);
}

export function dictionaryPage(body: Buffer, values: number): Buffer {
  const head = struct({ 1: i32(values), 2: i32(0) });
  return Buffer.concat([struct({ 1: i32(2), 2: i32(body.length), 3: i32(body.length), 7: head }).bytes, body]);
}

export interface Column {
  name: string;
  pages: Buffer[];
  /** Whether values may be missing; the pages then begin with definition levels. */
  isOptional?: boolean;
  /** 6: BYTE_ARRAY (a text), 5: DOUBLE. */
  type?: number;
  /** 0: none, 1: Snappy. */
  codec?: number;
  /** Stated bytes of the column; the true number by default. */
  size?: number;
  /** Number of the converted type; 0, UTF8, for texts. */
  converted?: number;
  /** Whether the first page is a dictionary. */
  hasDictionary?: boolean;
}

interface FileOptions {
  /** Stated number of rows; that of the data by default. */
  rows: number;
  /** Stated bytes of the row group. */
  bytes?: number;
  /** Stated bytes of the footer. */
  footer?: number;
  /** Further elements of the schema. */
  elements?: Part[];
}

/** A file with one row group. */
export function parquetFile(columns: readonly Column[], { rows, bytes, footer, elements = [] }: FileOptions): Buffer {
  const parts: Buffer[] = [Buffer.from('PAR1')];
  let at = 4;
  const chunks = columns.map(({ name, pages, type = 6, codec = 0, size, hasDictionary = false }) => {
    const content = Buffer.concat(pages);
    const from = at;
    parts.push(content);
    at += content.length;
    const data = hasDictionary ? from + pages[0].length : from;
    const about = struct({
      ...{ 1: i32(type), 2: list([i32(0)]), 3: list([text(name)]), 4: i32(codec), 5: i64(rows) },
      ...{ 6: i64(content.length), 7: i64(size ?? content.length), 9: i64(data) },
      11: hasDictionary ? i64(from) : undefined,
    });
    return struct({ 2: i64(from), 3: about });
  });
  const schema = columns.map(({ name, type = 6, isOptional = false, converted = type === 6 ? 0 : undefined }) =>
    struct({
      ...{ 1: i32(type), 3: i32(isOptional ? 1 : 0), 4: text(name) },
      6: converted === undefined ? undefined : i32(converted),
    }),
  );
  const root = struct({ 4: text('schema'), 5: i32(columns.length + elements.length) });
  const group = struct({ 1: list(chunks), 2: i64(bytes ?? at), 3: i64(rows) });
  const metadata = struct({ 1: i32(1), 2: list([root, ...schema, ...elements]), 3: i64(rows), 4: list([group]) }).bytes;
  const end = Buffer.alloc(4);
  end.writeUInt32LE(footer ?? metadata.length);
  return Buffer.concat([...parts, metadata, end, Buffer.from('PAR1')]);
}
