// Rows of data files in each form, Parquet as pyarrow writes it, and files that cannot be used.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dataRows } from '../../../../envs/api/data-rows';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'ragen-rows-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

test('Parquet', async () => {
  const rows = await dataRows(resolve(__dirname, '../../../golden/data-rows/questions.parquet'), 'none');
  expect(rows).toHaveLength(40);
  expect(rows[39]).toEqual({ id: 39n, question: 'What is 39 times 39?', ground_truth: ['1521', '1521.0'] });
});

test('JSON Lines and JSON', async () => {
  expect(await dataRows(file('a.jsonl', '{"a":1}\n\n{"a":"é"}\n'), 'none')).toEqual([{ a: 1 }, { a: 'é' }]);
  expect(await dataRows(file('a.json', '[{"a":1}]'), 'none')).toEqual([{ a: 1 }]);
});

test.each([
  ['no.jsonl', undefined, /finds no data at .*no\.jsonl/],
  ['empty.jsonl', '', /finds no rows in .*empty\.jsonl/],
  ['bad.json', '{}', /cannot read the data of .*bad\.json \(it is no array\)/],
  ['bad.parquet', 'PAR0 of no parquet', /cannot read the data of .*bad\.parquet/],
])('%s', async (name, text, message) => {
  const path = text === undefined ? join(folder, name) : file(name, text);
  await expect(dataRows(path, 'get it')).rejects.toMatchObject({
    message: expect.stringMatching(message),
    remedy: 'get it',
  });
});
