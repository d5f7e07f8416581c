// Writes a run's metrics as scalars to TensorBoard event files. A file is a sequence of TFRecords (length and payload,
// each with a masked CRC-32C); a payload is an Event (tensorflow/core/util/event.proto) with only some of its fields.
// Each session of a run has a separate file, as TensorBoard expects. If a session resumes from step n, its file makes
// TensorBoard discard the earlier values of all steps after n.
// @roboflow/tfrecords is not used, because it writes TensorFlow's Examples instead of Events.
import { Writer } from 'protobufjs/minimal';
import { maskedCrc } from '../../common/crc32c';
import { AppendLog } from './append-log';
import type { AppendLogOptions } from './append-log';

/**
 * Returns a file name such as `events.out.tfevents.0000000001.ragen`. TensorBoard recognises event files by `tfevents`
 * in the name and reads them in the order of their names.
 */
export const eventLogName = (session: number): string =>
  `events.out.tfevents.${String(session).padStart(10, '0')}.ragen`;

export class EventLog extends AppendLog {
  /**
   * Creates the file; an existing file is emptied. Errors are UserErrors.
   * @param resumedAt the step from which a resumed run continues; null for a new run
   * @param seconds current time, in seconds since 1970
   */
  constructor(file: string, resumedAt: number | null, seconds: number, options: AppendLogOptions) {
    super(file, options, () => 0);
    this.appendBytes(tfRecord(event(seconds).uint32(tag.fileVersion).string('brain.Event:2')));
    if (resumedAt !== null)
      this.appendBytes(
        tfRecord(
          event(seconds, resumedAt + 1)
            .uint32(tag.sessionLog)
            .bytes(sessionStart),
        ),
      );
  }

  /**
   * Appends the scalars of a step as float32, the precision of an Event; the values must be finite. Returns the offset
   * after the scalars.
   */
  scalars(step: number, seconds: number, values: Readonly<Record<string, number>>): number {
    const summary = event(seconds, step).uint32(tag.summary).fork();
    for (const [name, value] of Object.entries(values))
      summary.uint32(tag.value).fork().uint32(tag.name).string(name).uint32(tag.simpleValue).float(value).ldelim();
    return this.appendBytes(tfRecord(summary.ldelim()));
  }
}

/** Protobuf tags of the fields: field number × 8 + wire type. */
const tag = {
  // Event
  wallTime: (1 << 3) | 1,
  step: 2 << 3,
  fileVersion: (3 << 3) | 2,
  summary: (5 << 3) | 2,
  sessionLog: (7 << 3) | 2,
  // Summary and Summary.Value
  value: (1 << 3) | 2,
  name: (1 << 3) | 2,
  simpleValue: (2 << 3) | 5,
} as const;

/** SessionLog {status: START}: makes readers discard earlier values of this step and of later steps. */
const sessionStart = Writer.create()
  .uint32(1 << 3)
  .int32(1)
  .finish();

function event(seconds: number, step = 0): Writer {
  const writer = Writer.create().uint32(tag.wallTime).double(seconds);
  return step === 0 ? writer : writer.uint32(tag.step).int64(step); // an absent field is read as 0
}

function tfRecord(message: Writer): Uint8Array {
  const payload = message.finish();
  const record = new Uint8Array(payload.length + 16);
  const view = new DataView(record.buffer);
  view.setUint32(0, payload.length, true); // the upper 4 bytes of the length stay 0
  view.setUint32(8, maskedCrc(record.subarray(0, 8)), true);
  record.set(payload, 12);
  view.setUint32(12 + payload.length, maskedCrc(payload), true);
  return record;
}
