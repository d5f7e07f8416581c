// `ragen env observations`: the first observation of each seed equals the one shown when the environment is played.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { document, ragen } from '../../../support/terminal';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'ragen-observations-'))));
afterAll(() => rmSync(folder, { recursive: true }));

interface Row {
  data_source: string;
  prompt: { role: string; content: string }[];
  extra_info: { split: string; index: number; seed: number };
}

test('writes one line per seed, with the observation shown in play', async () => {
  const args = ['env', 'observations', 'frozen_lake', '--seeds', '5..304', '--set', 'size=4', '--out', 'lakes.jsonl'];
  const { code, answer, stderr } = await document(folder, args);
  expect(code, stderr).toBe(0);
  expect(answer).toEqual({ file: join(folder, 'lakes.jsonl'), observations: 300 });
  const rows = readFileSync(join(folder, 'lakes.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Row);
  expect(rows.map(({ extra_info }) => extra_info)).toEqual(
    Array.from({ length: 300 }, (_, index) => ({ split: 'train', index, seed: 5 + index })),
  );
  const { stdout } = await ragen(folder, [
    'env',
    'observations',
    'frozen_lake',
    '--seeds',
    '300..300',
    '--set',
    'size=4',
  ]);
  expect(JSON.parse(stdout)).toEqual({ ...rows[295], extra_info: { split: 'train', index: 0, seed: 300 } });
  expect(rows[295].prompt[0].content).toMatch(/P/);
  expect(new Set(rows.map(({ prompt }) => prompt[0].content)).size).toBeGreaterThan(100);
});

test.each([
  [['--seeds', '9..3'], '--seeds is 9..3: give the first and the last seed, such as 10000..10099'],
  [
    ['--out', 'none/lakes.jsonl'],
    expect.stringMatching(/^store: cannot write \S+none\/lakes\.jsonl \(ENOENT\): /) as unknown,
  ],
  [['--mode', 'test'], '--mode is test: use train or val'],
])('refuses %j in one sentence', async (argv, sentence) => {
  const { code, stderr } = await ragen(folder, ['env', 'observations', 'bandit', ...argv]);
  expect([code, stderr.trimEnd()]).toEqual([1, sentence]);
  expect(stderr.trimEnd()).not.toContain('\n');
});
