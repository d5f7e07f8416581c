// Writes TensorBoard event files: TFRecords with a length, its masked CRC-32C, a payload and its masked CRC-32C.
import { maskedCrc } from '../../extension/common/crc32c';
import { varint } from './parquet-file';

const field = (number: number, type: number, bytes: Buffer): Buffer =>
  Buffer.concat([varint((number << 3) | type), type === 2 ? varint(bytes.length) : Buffer.alloc(0), bytes]);

/** An event with one scalar (tensorflow/core/util/event.proto). */
export function scalarEvent(step: number, tag: string, value: number): Buffer {
  const number = Buffer.alloc(4);
  number.writeFloatLE(value);
  const summary = field(1, 2, Buffer.concat([field(1, 2, Buffer.from(tag)), field(2, 5, number)]));
  return Buffer.concat([field(2, 0, varint(step)), field(5, 2, summary)]);
}

interface RecordOptions {
  /** Stated length; that of the payload by default. */
  length?: number;
  /** Added to the checksums, which are then wrong. */
  lengthError?: number;
  payloadError?: number;
}

export function eventRecord(
  payload: Buffer,
  { length, lengthError = 0, payloadError = 0 }: RecordOptions = {},
): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt32LE(length ?? payload.length);
  head.writeUInt32LE((maskedCrc(head.subarray(0, 8)) + lengthError) >>> 0, 8);
  const tail = Buffer.alloc(4);
  tail.writeUInt32LE((maskedCrc(payload) + payloadError) >>> 0);
  return Buffer.concat([head, payload, tail]);
}
