import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { JsonLines } from '../../../extension/node/json-lines';

let folder: string;
let file: string;
let lines: JsonLines<{ step: number }>;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ragen-lines-'));
  file = join(folder, 'metrics.jsonl');
  lines = new JsonLines(file, z.object({ step: z.number() }));
});
afterEach(() => rm(folder, { recursive: true }));

test('a missing file is empty', async () => {
  expect(await lines.read()).toEqual({ lines: [], restarted: false });
});

test('each line is returned once, and a torn tail once its newline has arrived', async () => {
  await writeFile(file, '{"step":1}\n{"step":2}\n{"st');
  expect((await lines.read()).lines).toEqual([{ step: 1 }, { step: 2 }]);
  expect((await lines.read()).lines).toEqual([]);
  await appendFile(file, 'ep":3}\n');
  expect(await lines.read()).toEqual({ lines: [{ step: 3 }], restarted: false });
});

test('a character split across reads is decoded completely', async () => {
  const text = new JsonLines(file, z.object({ note: z.string() }));
  const bytes = Buffer.from('{"note":"Fußweg"}\n');
  const cut = bytes.indexOf(0xc3) + 1;
  await writeFile(file, bytes.subarray(0, cut));
  expect((await text.read()).lines).toEqual([]);
  await appendFile(file, bytes.subarray(cut));
  expect((await text.read()).lines).toEqual([{ note: 'Fußweg' }]);
});

test('lines that are not JSON or do not match the schema are skipped', async () => {
  await writeFile(file, '{"step":1}\nnonsense\n{"step":"two"}\n\n{"step":4}\n');
  expect((await lines.read()).lines).toEqual([{ step: 1 }, { step: 4 }]);
});

test('a file truncated and grown past the cursor is reread', async () => {
  await writeFile(file, '{"step":1}\n{"step":2}\n{"step":3}\n');
  await lines.read();
  await truncate(file, '{"step":1}\n'.length);
  await appendFile(file, '{"step":20}\n{"step":30}\n{"step":40}\n');
  expect(await lines.read()).toEqual({
    lines: [{ step: 1 }, { step: 20 }, { step: 30 }, { step: 40 }],
    restarted: true,
  });
  expect(await lines.read()).toEqual({ lines: [], restarted: false });
});

test('a file truncated to fewer lines, or deleted, is reread', async () => {
  await writeFile(file, '{"step":1}\n{"step":2}\n');
  await lines.read();
  await truncate(file, '{"step":1}\n'.length);
  expect(await lines.read()).toEqual({ lines: [{ step: 1 }], restarted: true });
  await rename(file, `${file}.old`);
  expect(await lines.read()).toEqual({ lines: [], restarted: true });
  expect(await lines.read()).toEqual({ lines: [], restarted: false });
});

test('a file replaced by another of the same length is reread', async () => {
  await writeFile(file, '{"step":1}\n');
  await lines.read();
  await writeFile(file, '{"step":9}\n');
  expect(await lines.read()).toEqual({ lines: [{ step: 9 }], restarted: true });
});
