// The snapshot of a sweep: runs by id, the metric that is shown, and runs without a folder or without metrics.
import { expect, test } from 'vitest';
import { thisRunner } from '../../../../extension/node/sweep-runner';
import { sweepFileSchema, type SweepFile } from '../../../../extension/run-data/sweep-file';
import { sweepSnapshot } from '../../../../extension/vscode/sweeps/sweep-snapshot';
import { runAt } from '../../../e2e/preview/data';

const file: SweepFile = sweepFileSchema.parse({
  ...{ schema: 1, id: 'rates', file: '/w/config/sweeps/rates.yaml', overrides: [], jobs: 2, retries: 1, updated: '' },
  ...{ runner: null, halving: null },
  points: [{ label: 'a', config: 'c', values: {}, stopped: null }],
  members: [
    { point: 0, seed: 1, run: 'one', attempts: 1 },
    { point: 0, seed: 2, run: 'gone', attempts: 1 },
    { point: 0, seed: 3, run: null, attempts: 0, problem: 'no model' },
    { point: 0, seed: 4, run: 'unreadable', attempts: 2 },
  ],
});
const runOf = (id: string) =>
  ['one', 'unreadable'].includes(id) ? { folder: `/runs/${id}`, summary: { ...runAt(2, 4), id } } : undefined;
const success = 'val-env/Lake/success';
const figures = {
  values: ({ folder }: { folder: string }, requests: readonly { key: string; at: unknown }[]) =>
    folder === '/runs/one'
      ? Promise.resolve({
          values: requests.map(({ key, at }) => (key === success ? (at === 'best' ? 0.75 : 0.5) : null)),
          keys: ['train/Lake/success', success],
        })
      : Promise.reject(new Error('the disk')),
};

test('cells have the run, its values, its attempts and its problem', async () => {
  const snapshot = await sweepSnapshot(file, runOf, figures, '');
  expect(snapshot).toMatchObject({ id: 'rates', jobs: 2, isRunning: false, rungs: [], metric: success });
  expect(snapshot.cells.map(({ run, last, best, attempts }) => [run?.id, last, best, attempts])).toEqual([
    ['one', 0.5, 0.75, 1],
    [undefined, null, null, 1],
    [undefined, null, null, 0],
    ['unreadable', null, null, 2],
  ]);
  expect(snapshot.cells[2].problem).toBe('no model');
});

test('the chosen metric is kept if a run has it, and the sweep runs while its process lives', async () => {
  const halving = { rungs: [2], factor: 2, least_points: 1, metric: null, goal: 'max' as const };
  const running = { ...file, runner: thisRunner(), halving };
  const snapshot = await sweepSnapshot(running, runOf, figures, 'train/Lake/success');
  expect(snapshot).toMatchObject({ metric: 'train/Lake/success', isRunning: true, rungs: [2] });
  const reused = { ...running, runner: { ...thisRunner(), process_start: 'earlier' } };
  expect((await sweepSnapshot(reused, runOf, figures, '')).isRunning).toBe(false);
});
