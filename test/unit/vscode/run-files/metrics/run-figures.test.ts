// The figures of 500 runs: how many files are read when the table asks for them, asks again, and runs grow.
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MetricColumns } from '../../../../../extension/vscode/run-files/metrics/metric-columns';
import { RunFigures, type MetricRequest } from '../../../../../extension/vscode/run-files/metrics/run-figures';
import { configKeysOf, runCells } from '../../../../../extension/vscode/pages/run-table-cells';
import type { Manifest } from '../../../../../extension/run-data/run-manifest';
import { partial } from '../../../../support/partial';
import { temporaryFolder } from '../../../../support/temporary-folder';

const temporary = temporaryFolder();
const lines = (from: number, to: number, scale = 1) =>
  Array.from({ length: to - from + 1 }, (_, i) =>
    JSON.stringify({
      step: from + i,
      'actor/entropy': scale / (from + i),
      'timing_s/gen': 9,
      ...((from + i) % 5 === 0 && { 'val-env/lake/success': 0.1 * scale }),
    }),
  ).join('\n') + '\n';

function makeRuns(count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const folder = join(temporary(), `run-${i}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'metrics.jsonl'), lines(1, 12, i + 1));
    return folder;
  });
}

/** Figures that count how often a run's metrics are opened and updated. */
function counted(): { figures: RunFigures; reads: string[]; opened: string[] } {
  const [reads, opened]: string[][] = [[], []];
  const figures = new RunFigures(folder => {
    opened.push(folder);
    const columns = new MetricColumns(folder, null);
    return {
      update() {
        reads.push(folder);
        return columns.update();
      },
    };
  });
  return { figures, reads, opened };
}

const requests: MetricRequest[] = [
  { key: 'actor/entropy', at: 'last' },
  { key: 'actor/entropy', at: 'best' },
  { key: 'val-env/lake/success', at: 'last' },
  { key: 'missing', at: 'last' },
];

it('500 runs are read once; later queries read only what has grown', async () => {
  const folders = makeRuns(500);
  const { figures, reads } = counted();
  const all = (more: MetricRequest[] = requests) =>
    Promise.all(folders.map(folder => figures.values({ folder, live: false }, more)));
  const [first] = await all();
  expect(first).toEqual({
    values: [1 / 12, 1, 0.1, null],
    keys: ['actor/entropy', 'timing_s/gen', 'val-env/lake/success'],
  });
  expect(reads).toHaveLength(500);
  await all();
  await all([{ key: 'timing_s/gen', at: 'best' }]);
  expect(reads).toHaveLength(500);
  appendFileSync(join(folders[7], 'metrics.jsonl'), lines(13, 13, 13));
  const grown = await all();
  expect(reads).toHaveLength(501);
  expect(grown[7].values[0]).toBe(1);
  await all([{ key: 'actor/entropy', at: 4 }]); // a value at a step needs the columns once
  await all([{ key: 'actor/entropy', at: 4 }]);
  expect(reads).toHaveLength(1001);
});

it('a growing run keeps its columns, so only its new lines are read', async () => {
  const [folder] = makeRuns(1);
  const { figures, reads, opened } = counted();
  const live = { folder, live: true };
  await figures.values(live, requests);
  appendFileSync(join(folder, 'metrics.jsonl'), lines(13, 20));
  expect((await figures.values(live, requests)).values).toEqual([1 / 20, 1, 0.1, null]);
  expect([reads.length, opened.length]).toEqual([2, 1]);
});

it('a value at a step is the newest up to this step, and missing if the run has not reached it', async () => {
  const [folder] = makeRuns(1);
  const { figures } = counted();
  const at = (key: string, step: number): MetricRequest => ({ key, at: step });
  const asked = [
    at('actor/entropy', 4),
    at('val-env/lake/success', 4),
    at('val-env/lake/success', 7),
    at('actor/entropy', 13),
  ];
  expect((await figures.values({ folder, live: false }, asked)).values).toEqual([0.25, null, 0.1, null]);
  appendFileSync(join(folder, 'metrics.jsonl'), lines(13, 13));
  expect((await figures.values({ folder, live: false }, asked)).values).toEqual([0.25, null, 0.1, 1 / 13]);
});

it('the cells of a run come from its configuration and its figures; a missing file has no metrics', async () => {
  const [folder] = makeRuns(1);
  const manifest = partial<Manifest>({
    config: { optim: { lr: 0.1 }, tags: ['a'] },
    sweep: { id: 's', point: 'lr=0.1' },
  });
  const other = partial<Manifest>({ config: { optim: { lr: 0.2 }, tags: ['a'] } });
  expect(configKeysOf([manifest, other])).toEqual({
    configKeys: ['optim.lr', 'tags', 'sweep.id', 'sweep.point'],
    variedKeys: ['optim.lr', 'sweep.id', 'sweep.point'],
  });
  const { figures } = counted();
  const ids = ['config(optim.lr)', 'best(timing_s/gen)', 'config(sweep.point)', 'config(none)', 'name'];
  const run = (path: string) => ({ folder: path, summary: { live: false }, reader: { manifest } });
  expect(await runCells(figures, run(folder), ids)).toMatchObject({ folder, values: [0.1, 9, 'lr=0.1', null, null] });
  const gone = await runCells(figures, run(join(temporary(), 'gone')), ids);
  expect(gone).toEqual({ folder: join(temporary(), 'gone'), values: [0.1, null, 'lr=0.1', null, null], keys: [] });
  mkdirSync(join(temporary(), 'odd', 'metrics.jsonl'), { recursive: true });
  expect((await runCells(figures, run(join(temporary(), 'odd')), ids)).problem).toMatch(
    /is a folder, not a regular file/,
  );
});
