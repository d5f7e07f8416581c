// Parquet files that state wrong sizes, or whose pages expand: each is refused in one sentence that names the file, in
// little time and memory, and the other steps of the run are shown.
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { statusSchema } from '../../../extension/run-data/run-status-file';
import { attachOnce } from '../../support/attached';
import {
  dataPage,
  dictionaryPage,
  i32,
  parquetFile,
  plainTexts,
  runOf,
  struct,
  text,
  varint,
  withLength,
  type Column,
} from '../../support/parquet-file';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

const double = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
};
const texts = (name: string, values: string[]): Column => ({
  name,
  pages: [dataPage(plainTexts(values), values.length)],
});
const prompt = texts('prompt', ['two?', 'two?']);
const completion = texts('completion', ['2', '3']);
const reward: Column = { name: 'reward', type: 5, pages: [dataPage(Buffer.concat([double(1), double(0)]), 2)] };
const good = parquetFile([prompt, completion, reward], { rows: 2 });

/** A file whose column `prompt` is another one. */
const withPrompt = (column: Partial<Column>): Buffer =>
  parquetFile([{ ...prompt, ...column }, completion, reward], { rows: 2 });

/** Snappy: one literal byte, then copies of 64 bytes that repeat it. */
function snappyOf(length: number): Buffer {
  const copies = Math.ceil((length - 1) / 64);
  const body = Buffer.alloc(3 * copies);
  for (let i = 0; i < copies; i++) body.set([(63 << 2) | 2, 1, 0], 3 * i);
  return Buffer.concat([varint(1 + 64 * copies), Buffer.from([0, 0x61]), body]);
}

const bomb = snappyOf(2 ** 27);
const dictionary = dictionaryPage(plainTexts(['two?']), 1);

/** Files that must be refused, each with a part of the reason. */
const hostile: [name: string, file: Buffer, reason: string][] = [
  ['a footer that is longer than the file', parquetFile([prompt], { rows: 2, footer: 2 ** 31 }), 'is no Parquet file'],
  ['no footer, but its mark', Buffer.from('PAR1\0\0\0\0\0\0\0\0PAR1'), 'cannot be read as Parquet'],
  ['a column that is longer than the file', withPrompt({ size: 2 ** 20 }), 'outside of the file'],
  ['a column of many gigabytes', withPrompt({ size: 2 ** 40 }), 'a row group of more than'],
  ['a row group of many gigabytes', parquetFile([prompt], { rows: 2, bytes: 2 ** 40 }), 'a row group of more than'],
  ['more rows than a row group may have', parquetFile([prompt], { rows: 2 ** 40 }), 'a row group of more than 1000000'],
  [
    'a page that is longer than its column',
    withPrompt({ pages: [dataPage(plainTexts(['a', 'b']), 2, { compressed: 2 ** 30 })] }),
    'a page that is longer',
  ],
  [
    'a page that states two gigabytes',
    withPrompt({ codec: 1, pages: [dataPage(Buffer.from([1, 0, 0x61]), 2, { full: 2 ** 31 - 1 })] }),
    'more bytes than a row group may have',
  ],
  [
    'compressed pages that expand to many times the limit',
    withPrompt({ codec: 1, pages: [1, 2, 3].map(() => dataPage(bomb, 2, { full: 1 + 64 * 2 ** 21 })) }),
    'more bytes than a row group may have',
  ],
  [
    'a page that states a billion values',
    withPrompt({ pages: [dataPage(plainTexts(['a', 'b']), 2 ** 30)] }),
    'more values than a row group may have',
  ],
  [
    'levels with a run of a billion values',
    withPrompt({ isOptional: true, pages: [dataPage(withLength(runOf(2 ** 30, 1)), 2)] }),
    'a run of values that is longer',
  ],
  [
    'numbers of dictionary entries with a run of a billion values',
    withPrompt({
      hasDictionary: true,
      pages: [dictionary, dataPage(Buffer.concat([Buffer.from([1]), runOf(2 ** 30, 0)]), 2, { encoding: 8 })],
    }),
    'a run of values that is longer',
  ],
  [
    'a schema of 5000 columns',
    parquetFile([prompt], {
      rows: 2,
      elements: Array.from({ length: 5000 }, (_, i) => struct({ 1: i32(6), 3: i32(0), 4: text(`c${i}`) })),
    }),
    'more than 4096 columns',
  ],
  [
    'a decimal number of a megabyte',
    withPrompt({ converted: 5, pages: [dataPage(plainTexts(['1'.repeat(2 ** 20), '1']), 2)] }),
    'decimal numbers of more than 32 bytes',
  ],
  [
    'a header that is nested without end',
    withPrompt({ pages: [Buffer.alloc(60_000, 0x1c)] }),
    'cannot be read as Parquet',
  ],
];

async function attached(file: Buffer) {
  const folder = join(workspace(), 'run');
  const completions = join(folder, 'completions');
  mkdirSync(completions, { recursive: true });
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  for (const [step, content] of [good, file, good].entries()) {
    const path = join(completions, `completions_0000${step + 1}.parquet`);
    writeFileSync(path, content);
    utimesSync(path, old, old);
  }
  const run = await attachOnce(workspace(), folder);
  const events = readFileSync(run.folder.file('events.jsonl'), 'utf8');
  const status = statusSchema.parse(JSON.parse(readFileSync(run.folder.file('status.json'), 'utf8')));
  return { ...run, events, leftOut: status.left_out ?? [], path: join(completions, 'completions_00002.parquet') };
}

it('reads a good file', async () => {
  const { episodes, leftOut } = await attached(good);
  expect(Object.values(episodes).map(each => each.map(({ reward: score }) => score))).toEqual([[1, 0], [1, 0], [1, 0]]); // prettier-ignore
  expect(leftOut).toEqual([]);
});

describe('a file with', () => {
  it.each(hostile)('%s', async (_, file, reason) => {
    const began = performance.now();
    const before = process.memoryUsage().rss;
    const { adapter, episodes, events, leftOut, path } = await attached(file);
    expect(adapter).toBe('trl');
    expect(Object.keys(episodes)).toEqual(['step-000001', 'step-000003']);
    expect(leftOut).toHaveLength(1);
    expect(leftOut[0]).toContain(path);
    expect(leftOut[0]).toContain(reason);
    expect(leftOut[0]).not.toContain('\n');
    expect(events).toContain(JSON.stringify(leftOut[0]).slice(1, -1));
    expect(performance.now() - began).toBeLessThan(20_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(1e9);
  });
});

it('rows that repeat a text of the dictionary beyond the limit of a row are skipped and counted', async () => {
  const count = 50_000;
  const long = dictionaryPage(plainTexts(['x'.repeat(17 * 2 ** 20)]), 1);
  const indices = dataPage(Buffer.concat([Buffer.from([1]), runOf(count, 0)]), count, { encoding: 8 });
  const short = dataPage(Buffer.concat([Buffer.from([1]), runOf(count, 0)]), count, { encoding: 8 });
  const file = parquetFile(
    [
      { name: 'prompt', hasDictionary: true, pages: [long, indices] },
      { name: 'completion', hasDictionary: true, pages: [dictionary, short] },
    ],
    { rows: count },
  );
  const began = performance.now();
  const { episodes, leftOut } = await attached(file);
  expect(Object.keys(episodes)).toEqual(['step-000001', 'step-000003']);
  expect(leftOut).toEqual([expect.stringContaining('50000 lines of the rollouts could not be read')]);
  expect(performance.now() - began).toBeLessThan(20_000);
});
