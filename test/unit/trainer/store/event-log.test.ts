// TensorBoard's event files equal the files of TensorBoard's own writer byte for byte, and a resume truncates them like
// the other logs.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EventLog, eventLogName } from '../../../../extension/trainer/store/event-log';
import { syncFileSystem } from '../../../../extension/node/files';
import type { SyncFileSystem } from '../../../../extension/node/files';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { eventsIn, scalarSteps } from '../../../support/events-in';
import { diskFull } from '../../../support/failing-files';
import { temporaryFolder } from '../../../support/temporary-folder';
import { rollBack } from '../../../../extension/trainer/store/rollback';

const folder = temporaryFolder();
const golden = join(import.meta.dirname, '../../../golden/tensorboard');

test("a file equals TensorBoard's byte for byte", () => {
  const { seconds, resumed_at, scalars } = JSON.parse(readFileSync(join(golden, 'scalars.json'), 'utf8')) as {
    seconds: number;
    resumed_at: number;
    scalars: Record<string, Record<string, number>>;
  };
  const file = join(folder(), 'events');
  const log = new EventLog(file, resumed_at, seconds, { fsync: 'explicit' });
  for (const [step, values] of Object.entries(scalars)) log.scalars(Number(step), seconds, values);
  log.sync();
  const written = readFileSync(file);
  expect(log.offset).toBe(written.length);
  log.close();
  expect(written.equals(readFileSync(join(golden, 'events.out.tfevents.golden')))).toBe(true);
  expect(eventsIn(file).at(-1)?.summary?.value[7]).toEqual({ tag: 'group/7', simple_value: 1 });
});

test('a failed append leaves no part of its record', () => {
  const file = join(folder(), 'events');
  let full = false;
  const writeSync = ((fd: number, bytes: Uint8Array, from: number, length: number, position: number) => {
    const written = syncFileSystem.writeSync(fd, bytes, from, full ? Math.min(length, 7) : length, position);
    if (full) throw diskFull();
    return written;
  }) as SyncFileSystem['writeSync'];
  const log = new EventLog(file, null, 1, { fsync: 'explicit', fs: { ...syncFileSystem, writeSync } });
  log.scalars(1, 1, { a: 1 });
  const whole = log.offset;
  full = true;
  expect(() => log.scalars(2, 2, { a: 2 })).toThrow(/store: cannot append to .*events \(ENOSPC\)/);
  expect(readFileSync(file).length).toBe(whole);
  full = false;
  log.scalars(2, 2, { a: 2 });
  log.close();
  expect(eventsIn(file).map(({ step }) => step)).toEqual([0, 1, 2]);
});

const about = {
  ...{ name: 'x', config_name: 'x', overrides: [], config: {}, config_hash: '', seeds: {}, versions: {} },
  ...{ hardware: {}, model: { path: '', sha256: '', parameters: 0 }, environments: [] },
};

test('each session has its own file; going back to a checkpoint truncates its files and removes later files', async () => {
  const run = await RunFolder.create(folder(), about, new Date(0));
  const first = run.eventLog(null);
  first.log.scalars(1, 1, { a: 1 });
  const offsets = { ...first.earlier, [first.name]: first.log.offset };
  first.log.scalars(2, 2, { a: 2 });
  first.log.close();
  expect(first.name).toBe(`tensorboard/${eventLogName(1)}`);

  await rollBack(run, 1, offsets);
  const second = run.eventLog(1);
  expect(second.earlier).toEqual(offsets);
  for (const step of [2, 3]) second.log.scalars(step, step, { a: step });
  second.log.close();
  expect(scalarSteps(run.path)).toEqual([1, 2, 3]);
  expect(eventsIn(run.file(second.name))[1]).toMatchObject({ step: 2, session_log: { status: 1 } });

  // A kill leaves an incomplete record after the offset; a complete session after the checkpoint also lies after the
  // offset.
  writeFileSync(run.file(first.name), Buffer.concat([readFileSync(run.file(first.name)), Buffer.from([9, 0, 0])]));
  for (let times = 0; times < 2; times++) await rollBack(run, 1, offsets);
  expect(readdirSync(run.file('tensorboard'))).toEqual([eventLogName(1)]);
  expect(scalarSteps(run.path)).toEqual([1]);
  await rollBack(run, 0, {});
  expect(readdirSync(run.file('tensorboard'))).toEqual([]);
});
