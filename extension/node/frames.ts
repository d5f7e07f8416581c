// Frames between a trainer and its environment process, over a pipe. A frame consists of a header of 20 bytes, the
// message as JSON, and a binary part with the contents of the message's byte arrays. The header contains a magic
// number, the sequence number, the lengths of the JSON and of the binary part, and the CRC-32 of these two parts.
// Node's IPC channel is not used because it throws an uncaught error on invalid bytes, and environment code may write
// to any descriptor of its process. vscode-jsonrpc is not used because it carries no byte arrays and is slower. With
// vscode-jsonrpc, a request of one step takes 55 µs of processor time (sum of both sides), and 100 requests of 96 steps
// each take 64 ms. With frames, they take 29 µs and 57 ms. Invariants: lengths are checked before allocation; frame
// sizes, value counts and nesting are checked before parsing; every violation throws a FrameError, and nothing is read
// afterwards.
import { crc32 } from '../common/crc32';

/** Limits per frame. */
export const frameLimits = {
  /** Maximum bytes of the JSON. */
  json: 2 ** 26,
  /** Maximum total bytes of the byte arrays. */
  binary: 2 ** 27,
  /** Maximum number of values; estimated as the number of commas and opening brackets of the JSON. */
  values: 2 ** 22,
  depth: 256,
} as const;

const headerBytes = 20;
const magic = 0x4e474152; // "RAGN"
/**
 * An object with only this key encodes a value that JSON cannot represent. If the user's data contain an object with
 * only this key, that object is encoded too.
 */
const escape = '$ragen';

/** Thrown for invalid bytes, and for a value that does not fit into a frame. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** Encodes the messages in one direction of a pipe. */
export class FrameWriter {
  private sequence = 0;

  /**
   * Returns the frame of plain data: numbers, strings, booleans, null, undefined, arrays, objects, byte arrays.
   * @throws FrameError if the frame is too large
   */
  frame(message: unknown): Buffer {
    const chunks: Uint8Array[] = [];
    const json = Buffer.from(JSON.stringify(escaped(message, { chunks, bytes: 0 })), 'utf8');
    const binary = chunks.reduce((sum, { length }) => sum + length, 0);
    if (json.length > frameLimits.json || binary > frameLimits.binary)
      throw new FrameError(`a message has ${json.length} bytes of JSON and ${binary} bytes of byte arrays`);
    checkStructure(json);
    const frame = framed(json, chunks, this.sequence);
    this.sequence = (this.sequence + 1) >>> 0;
    return frame;
  }
}

/** Returns the bytes of a frame with this content. */
export function framed(json: Uint8Array, chunks: readonly Uint8Array[], sequence: number): Buffer {
  const frame = Buffer.concat([Buffer.alloc(headerBytes), json, ...chunks]);
  frame.writeUInt32LE(magic, 0);
  frame.writeUInt32LE(sequence, 4);
  frame.writeUInt32LE(json.length, 8);
  frame.writeUInt32LE(frame.length - headerBytes - json.length, 12);
  frame.writeUInt32LE(crc32(frame, headerBytes), 16);
  return frame;
}

/** Decodes the messages in one direction of a pipe. */
export class FrameReader {
  private sequence = 0;
  private chunks: Buffer[] = [];
  private held = 0;
  private broken: FrameError | undefined;

  /**
   * Yields the messages that this chunk completes, in order.
   * @throws FrameError at the first invalid bytes and on every later call
   */
  *push(chunk: Buffer): Generator<unknown, void> {
    if (this.broken) throw this.broken;
    this.chunks.push(chunk);
    this.held += chunk.length;
    try {
      for (let frame = this.next(); frame; frame = this.next()) yield parsed(frame.json, frame.binary);
    } catch (error) {
      this.broken = error instanceof FrameError ? error : new FrameError((error as Error).message.slice(0, 200));
      this.chunks = [];
      throw this.broken;
    }
  }

  private next(): { json: Buffer; binary: Buffer } | undefined {
    if (this.held < headerBytes) return undefined;
    const header = this.peek(headerBytes);
    const [json, binary] = [header.readUInt32LE(8), header.readUInt32LE(12)];
    if (header.readUInt32LE(0) !== magic) throw new FrameError('bytes that do not start a message');
    if (header.readUInt32LE(4) !== this.sequence)
      throw new FrameError(`message ${header.readUInt32LE(4)} in place of message ${this.sequence}`);
    if (json > frameLimits.json || binary > frameLimits.binary)
      throw new FrameError(`a message that declares ${json} bytes of JSON and ${binary} bytes of byte arrays`);
    const size = headerBytes + json + binary;
    if (this.held < size) return undefined;
    const whole = this.peek(size);
    if (crc32(whole, headerBytes, size) !== whole.readUInt32LE(16))
      throw new FrameError('a message with a wrong checksum');
    this.sequence = (this.sequence + 1) >>> 0;
    const rest = this.chunks[0].subarray(size);
    this.chunks = rest.length > 0 ? [rest] : [];
    this.held -= size;
    return { json: whole.subarray(headerBytes, headerBytes + json), binary: whole.subarray(headerBytes + json, size) };
  }

  /**
   * Returns the first `size` received bytes as one buffer. Concatenates the received chunks if necessary, at most twice
   * per frame.
   */
  private peek(size: number): Buffer {
    if (this.chunks[0].length < size) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0].subarray(0, size);
  }
}

function parsed(json: Buffer, binary: Buffer): unknown {
  checkStructure(json);
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(json);
  return restored(JSON.parse(text), binary);
}

const [quote, backslash, comma, bracket, bracketEnd, brace, braceEnd] = Buffer.from('"\\,[]{}');

/** Throws a FrameError if the JSON has too many values or levels, before the parser allocates memory for them. */
function checkStructure(json: Buffer): void {
  let [values, depth] = [0, 0];
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === quote) {
      for (i++; i < json.length && json[i] !== quote; i++) if (json[i] === backslash) i++;
    } else if (byte === comma) values++;
    else if (byte === bracket || byte === brace) {
      values++;
      if (++depth > frameLimits.depth) throw new FrameError(`a message with more than ${frameLimits.depth} levels`);
    } else if (byte === bracketEnd || byte === braceEnd) depth--;
  }
  if (values > frameLimits.values) throw new FrameError(`a message with more than ${frameLimits.values} values`);
}

/** Numbers that JSON cannot represent, by their names in a frame. */
const numbers: Readonly<Record<string, number>> = { NaN, Infinity, '-Infinity': -Infinity, '-0': -0 };

/** Returns a value as plain JSON data. Returns the same object if no part of it needs encoding. */
function escaped(value: unknown, binary: { chunks: Uint8Array[]; bytes: number }): unknown {
  if (typeof value === 'number')
    return Number.isFinite(value) && !Object.is(value, -0)
      ? value
      : { [escape]: Object.is(value, -0) ? '-0' : String(value) };
  if (value === undefined) return { [escape]: 'undefined' };
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) {
    const at = binary.bytes;
    binary.chunks.push(value);
    binary.bytes += value.length;
    return { [escape]: [at, value.length] };
  }
  if (Array.isArray(value)) {
    let copy: unknown[] | undefined;
    for (let i = 0; i < value.length; i++) {
      const item = escaped(value[i], binary);
      if (item !== value[i]) (copy ??= [...(value as unknown[])])[i] = item;
    }
    return copy ?? value;
  }
  const entries: [string, unknown][] = Object.entries(value);
  let changed = false;
  for (const entry of entries) {
    const item = escaped(entry[1], binary);
    changed ||= item !== entry[1];
    entry[1] = item;
  }
  const copy = changed ? Object.fromEntries(entries) : value;
  return entries.length === 1 && entries[0][0] === escape ? { [escape]: { [escape]: entries[0][1] } } : copy;
}

function restored(value: unknown, binary: Buffer): unknown {
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'number' && !Number.isFinite(value)) throw new FrameError('a number out of range');
    return value;
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = restored(value[i], binary);
    return value;
  }
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record);
  if (keys.length === 1 && keys[0] === escape) return unescaped(record[escape], binary);
  for (const key of keys) {
    const item = record[key];
    const kept = restored(item, binary);
    // The property is defined instead of assigned, because the key may be `__proto__`.
    if (kept !== item)
      Object.defineProperty(record, key, { value: kept, enumerable: true, configurable: true, writable: true });
  }
  return record;
}

function unescaped(stands: unknown, binary: Buffer): unknown {
  if (stands === 'undefined') return undefined;
  if (typeof stands === 'string' && Object.hasOwn(numbers, stands)) return numbers[stands];
  if (Array.isArray(stands) && stands.length === 2) {
    const [at, length] = stands as unknown[];
    const whole = Number.isInteger(at) && Number.isInteger(length);
    if (!whole || Number(at) < 0 || Number(length) < 0 || Number(at) + Number(length) > binary.length)
      throw new FrameError('a byte array beyond the end of its message');
    return new Uint8Array(binary.subarray(Number(at), Number(at) + Number(length)));
  }
  if (typeof stands === 'object' && stands !== null && Object.keys(stands).join() === escape)
    return { [escape]: restored((stands as Record<string, unknown>)[escape], binary) };
  throw new FrameError('a value of an unknown kind');
}
