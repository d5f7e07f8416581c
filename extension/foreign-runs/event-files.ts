// Reads the scalars of TensorBoard event files while they grow. A file is a sequence of TFRecords: length (8 bytes),
// masked CRC-32C of the length, payload, masked CRC-32C of the payload. A payload is an Event
// (tensorflow/core/util/event.proto). Scalars are stored as simple_value, or by newer writers as a tensor. Several files
// of a folder belong together: each restart begins one. Kinds of data other than scalars are skipped; a record of more than
// 16 MiB, or one whose length has a wrong checksum, ends the file, and a record whose payload has a wrong checksum is
// skipped. Both are reported.
import { dirname, join } from 'node:path';
import { Reader } from 'protobufjs/minimal';
import { UserError } from '../common/user-error';
import { maskedCrc } from '../common/crc32c';
import { counted } from '../common/numbers';
import { isMissing, openRegular } from '../node/bounded-file';
import { readRange } from '../node/json-lines';
import type { MetricRow, MetricSource } from './adapter';
import { firstBytes } from './peek';
import type { SourceFolder } from './source-folder';

/** Matches the path of an event file. */
export const eventFileName = /(?:^|\/)[^/]*\.tfevents\.[^/]*$/;

/** Version in the first record of a file. */
const knownVersion = 'brain.Event:2';

/** Maximum number of files that are looked at to find a tag. */
const mostPeeks = 50;
const mostRecordBytes = 16 * 2 ** 20;
const blockBytes = 2 ** 20;
const [headBytes, tailBytes] = [12, 4];

/** Returns the folders with event files, each with its files, relative to the source; the root is the empty text. */
export function eventFolders(source: SourceFolder): Map<string, string[]> {
  const folders = new Map<string, string[]>();
  for (const { name } of source.matching(eventFileName)) {
    const folder = name.includes('/') ? dirname(name) : '';
    const names = folders.get(folder);
    if (names) names.push(name);
    else folders.set(folder, [name]);
  }
  return folders;
}

/**
 * Returns the folders in whose event files a tag matches. Only the beginning of each file is looked at, which contains
 * the tags of the first step.
 */
export async function foldersWithTag(source: SourceFolder, pattern: RegExp): Promise<string[]> {
  const found: string[] = [];
  for (const [folder, names] of [...eventFolders(source)].slice(0, mostPeeks))
    for (const name of names.slice(0, mostPeeks))
      if (pattern.test((await firstBytes(source, name)).toString('latin1'))) {
        found.push(folder);
        break;
      }
  return found;
}

/**
 * Returns a source that merges all event files whose folder `isIn` accepts, including files that appear later. A restart
 * of the trainer begins a new file, so files are read in the order of their creation: the later values of a step count.
 */
export function eventSource(source: SourceFolder, name: string, isIn: (folder: string) => boolean): MetricSource {
  const files = new Map<string, EventFile>();
  return {
    name,
    problems: () => [...files.values()].flatMap(file => file.problem() ?? []),
    async read(add) {
      let restarted = false;
      const names = [...eventFolders(source)].flatMap(([folder, own]) => (isIn(folder) ? own : []));
      for (const each of names.sort((a, b) => createdAt(a) - createdAt(b))) {
        const file = files.get(each) ?? new EventFile(source, each);
        files.set(each, file);
        restarted = (await file.read(add)) || restarted;
      }
      return restarted;
    },
  };
}

/** Returns the time of a file's creation in seconds since 1970, which its name contains; 0 without it. */
const createdAt = (name: string): number => Number(/\.tfevents\.(\d{1,15})(?:\.|$)/.exec(name)?.[1] ?? 0);

class EventFile {
  private offset = 0;
  /** What is wrong with the record at `offset`; no record after it is read. */
  private damage: string | undefined;
  /** Number of skipped records. */
  private skipped = 0;

  constructor(
    private readonly source: SourceFolder,
    private readonly name: string,
  ) {}

  /** Returns which part of the file is not shown, in one sentence; undefined if all of it is. */
  problem(): string | undefined {
    const path = join(this.source.root, this.name);
    if (this.damage !== undefined)
      return `${path} has ${this.damage} at byte ${this.offset}: the metrics after it are not shown; remove the file if the trainer has written another one`;
    if (this.skipped === 0) return undefined;
    return `${path} has ${counted(this.skipped, 'record')} with a wrong checksum: their metrics are not shown; copy the file again`;
  }

  /** Reads the records that were appended since the last call; returns true if the file was truncated. */
  async read(add: (row: MetricRow) => void): Promise<boolean> {
    const size = this.source.stat(this.name)?.size ?? 0;
    const restarted = size < this.offset;
    if (restarted) [this.offset, this.damage, this.skipped] = [0, undefined, 0];
    if (this.damage !== undefined || size <= this.offset) return restarted;
    let handle;
    try {
      handle = await openRegular(this.source.at(this.name), this.source.root);
    } catch (error) {
      if (isMissing(error)) return restarted;
      throw error;
    }
    try {
      for (let length = blockBytes; ;) {
        const bytes = await readRange(handle, this.offset, length);
        const { used, needed } = this.records(bytes, add);
        this.offset += used;
        if (this.damage !== undefined || bytes.length < length) break; // the rest of the file is an incomplete record
        length = used === 0 ? needed : blockBytes;
      }
    } finally {
      await handle.close();
    }
    return restarted;
  }

  /** Throws a UserError if the first record names an unknown version of the format. */
  private requireKnownVersion(payload: Uint8Array, at: number): void {
    const version = this.offset + at === 0 ? versionOf(payload) : undefined;
    if (version !== undefined && version !== knownVersion)
      throw new UserError(
        `${this.source.at(this.name)} has version ${JSON.stringify(version.slice(0, 100))} of TensorBoard's event files, but the known version is ${knownVersion}: update RAGEN Workbench, or write the file with another version of TensorBoard`,
      );
  }

  /** Reads the complete records in `bytes`. Returns their number of bytes, and the number of bytes of the next record. */
  private records(bytes: Buffer, add: (row: MetricRow) => void): { used: number; needed: number } {
    let at = 0;
    while (at + headBytes <= bytes.length) {
      const length = bytes.readUInt32LE(at);
      const isRecord = bytes.readUInt32LE(at + 8) === maskedCrc(bytes.subarray(at, at + 8));
      if (!isRecord || bytes.readUInt32LE(at + 4) !== 0 || length > mostRecordBytes) {
        this.damage = isRecord ? `a record of more than ${mostRecordBytes} bytes` : 'a length with a wrong checksum';
        return { used: at, needed: 0 };
      }
      const end = at + headBytes + length + tailBytes;
      if (end > bytes.length) return { used: at, needed: headBytes + length + tailBytes };
      const payload = bytes.subarray(at + headBytes, at + headBytes + length);
      if (bytes.readUInt32LE(end - tailBytes) === maskedCrc(payload)) {
        this.requireKnownVersion(payload, at);
        const row = rowOf(payload);
        if (row) add(row);
      } else this.skipped++;
      at = end;
    }
    return { used: at, needed: headBytes };
  }
}

/** Returns the version of the format that an event names; undefined without one. */
function versionOf(payload: Uint8Array): string | undefined {
  let version: string | undefined;
  try {
    forFields(Reader.create(payload), (field, type, reader) => {
      if (field !== 3 || type !== 2) return false;
      version = reader.string();
      return true;
    });
  } catch {
    return undefined;
  }
  return version;
}

/** Returns the scalars of an event; undefined if it has none or is no valid message. */
function rowOf(payload: Uint8Array): MetricRow | undefined {
  const values: Record<string, number> = {};
  let [time, step] = [Number.NaN, 0];
  try {
    forFields(Reader.create(payload), (field, type, reader) => {
      if (field === 1 && type === 1) time = reader.double() * 1000;
      else if (field === 2 && type === 0) step = Number(reader.int64());
      else if (field === 5 && type === 2) readSummary(reader.bytes(), values);
      else return false;
      return true;
    });
  } catch {
    return undefined;
  }
  if (!Number.isSafeInteger(step) || step < 0 || Object.keys(values).length === 0) return undefined;
  return { step, ...(Number.isFinite(time) && Math.abs(time) < 8.64e15 && { time }), values };
}

function readSummary(bytes: Uint8Array, values: Record<string, number>): void {
  forFields(Reader.create(bytes), (field, type, reader) => {
    if (field !== 1 || type !== 2) return false;
    let [tag, value] = ['', Number.NaN];
    forFields(Reader.create(reader.bytes()), (inner, kind, item) => {
      if (inner === 1 && kind === 2) tag = item.string();
      else if (inner === 2 && kind === 5) value = item.float();
      else if (inner === 8 && kind === 2) value = scalarOf(item.bytes());
      else return false;
      return true;
    });
    if (tag !== '' && Number.isFinite(value)) values[tag] = value;
    return true;
  });
}

/** Returns the value of a tensor with one float or double; NaN for other tensors. */
function scalarOf(bytes: Uint8Array): number {
  const found: number[] = [];
  let type = 0;
  forFields(Reader.create(bytes), (field, kind, reader) => {
    if (field === 1 && kind === 0) type = reader.int32();
    else if (field === 4 && kind === 2) {
      const content = reader.bytes();
      const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
      if (type === 1 && content.length === 4) found.push(view.getFloat32(0, true));
      else if (type === 2 && content.length === 8) found.push(view.getFloat64(0, true));
    } else if (field === 5 && (kind === 5 || kind === 2)) {
      if (kind === 2) {
        if (reader.uint32() !== 4) throw new RangeError('not a scalar');
      }
      found.push(reader.float());
    } else return false;
    return true;
  });
  return found.length === 1 ? found[0] : Number.NaN;
}

/** Calls `read` for each field; skips a field for which `read` returns false. Throws on invalid bytes. */
function forFields(reader: Reader, read: (field: number, type: number, reader: Reader) => boolean): void {
  while (reader.pos < reader.len) {
    const key = reader.uint32();
    if (!read(key >>> 3, key & 7, reader)) reader.skipType(key & 7);
  }
}
