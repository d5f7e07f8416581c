// Score distributions as strips: every step is in a column, and each bin counts the scores in its range.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ScoreStrips } from '../../../../../extension/vscode/run-files/episodes/score-strips';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-scores-'));
  const lines = Array.from({ length: 500 }, (_, i) => ({
    step: i + 1,
    tags: {
      A: [
        [-0.1, 3],
        [0.75, 1],
        [1, 4],
      ],
    },
  }));
  writeFileSync(join(folder, 'scores.jsonl'), lines.map(line => `${JSON.stringify(line)}\n`).join(''));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('each step has its own column when there is room for one per step, whatever the range', async () => {
  const strips = new ScoreStrips(folder);
  for (let span = 1; span <= 500; span++) {
    const [{ counts, bins }] = await strips.strips(1, span, span);
    const columns = Array.from({ length: span }, (_, at) => counts.subarray(at * bins, (at + 1) * bins));
    expect(columns.every(column => column.reduce((sum, count) => sum + count, 0) === 8)).toBe(true);
  }
});

it('fewer columns than steps contain all steps of the range and no others', async () => {
  const [{ counts, columns, bins }] = await new ScoreStrips(folder).strips(101, 477, 100);
  expect(counts.length).toBe(columns * bins);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(377 * 8);
});

it('reports the lowest and highest score of each bin: a single score is reported exactly', async () => {
  const [{ low, high, bins, lowest, highest }] = await new ScoreStrips(folder).strips(1, 10, 10);
  expect([low, high]).toEqual([-0.1, 1]);
  expect([lowest[0], highest[0], lowest[bins - 1], highest[bins - 1]]).toEqual([-0.1, -0.1, 1, 1]);
  expect(lowest[1]).toBe(Infinity);
});
