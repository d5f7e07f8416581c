// A reader of TensorBoard's event files, independent of the product's writer: framing by hand, payloads by the fields
// of TensorFlow's event.proto and summary.proto. Its checksum code is verified on a file written by TensorBoard
// (test/golden/tensorboard).
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'protobufjs';

const eventType = parse(
  `syntax = "proto3";
   message Event { double wall_time = 1; int64 step = 2; oneof what { string file_version = 3; Summary summary = 5; SessionLog session_log = 7; } }
   message Summary { message Value { string tag = 1; float simple_value = 2; } repeated Value value = 1; }
   message SessionLog { enum Status { UNSPECIFIED = 0; START = 1; } Status status = 1; }`,
  { keepCase: true },
).root.lookupType('Event');

export interface ReadEvent {
  wall_time: number;
  step: number;
  file_version?: string;
  summary?: { value: { tag: string; simple_value: number }[] };
  session_log?: { status: number };
}

/** The events of a file, in order. Throws if the last event is incomplete. */
export function eventsIn(file: string): ReadEvent[] {
  const bytes = readFileSync(file);
  const events: ReadEvent[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = Number(bytes.readBigUInt64LE(at));
    if (at + length + 16 > bytes.length) throw new Error(`${file} is incomplete at byte ${at}`);
    const message = eventType.decode(bytes.subarray(at + 12, at + 12 + length));
    events.push(eventType.toObject(message, { longs: Number, defaults: false }) as ReadEvent);
    at += length + 16;
  }
  return events.map(event => ({ ...event, step: event.step ?? 0 }));
}

/** The steps that have scalars, over all event files of a run, in the order of the file names. */
export function scalarSteps(run: string): number[] {
  const folder = join(run, 'tensorboard');
  const files = readdirSync(folder).sort();
  return files.flatMap(name => eventsIn(join(folder, name)).flatMap(({ step, summary }) => (summary ? [step] : [])));
}
