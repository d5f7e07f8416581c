// The summary of a run that has ended.
import { expect, test } from 'vitest';
import { endingFacts, endingSentence, runEnding, type EndedRun } from '../../../extension/run-data/run-ending';
import type { RunStatus } from '../../../extension/run-data/run-status-file';
import { duration, percent, short } from '../../../extension/vscode/runs/run-format';
import { partial } from '../../support/partial';

const formats = { percent, duration, short };
const ended = (change: Partial<EndedRun> = {}): EndedRun => ({
  status: partial<RunStatus>({ state: 'finished', step: 4, total_steps: 4 }),
  config: { workbench: { threads: 2, device: 'auto', engine: 'local' } },
  cores: 8,
  checkpoints: ['step-000002', 'step-000004'],
  steps: [0, 1, 2, 3, 4],
  success: [
    [0.1, Number.NaN, 0.8, Number.NaN, 0.5],
    [0.3, Number.NaN, 0.4, Number.NaN, 0.5],
  ],
  wall: [1, 2, 3, 4, 3600],
  tokens: [Number.NaN, 100_000, 200_000, 300_000, 400_000],
  provider: undefined,
  ...change,
});

test('an ending has the best and the last validation with their checkpoints, the duration and the cost', () => {
  const ending = runEnding(ended())!;
  expect(ending).toMatchObject({
    ...{ state: 'finished', unit: 'step', done: 4, seconds: 3600, cpuHours: 2, gpuHours: null, tokens: 1_000_000 },
    best: { step: 2, checkpoint: 'step-000002' },
    last: { step: 4, success: 0.5, checkpoint: 'step-000004' },
  });
  expect(ending.best!.success).toBeCloseTo(0.6, 12);
  expect(endingFacts(ending, formats)).toEqual([
    ['Best validation', '60 % at step 2 (step-000002)'],
    ['Last validation', '50 % at step 4 (step-000004)'],
    ['Duration', '1 h 00 m'],
    ['Cost', '2.00 CPU hours · 1.00 M tokens'],
  ]);
  expect(endingSentence('quickstart', ending, formats)).toBe(
    'Run quickstart finished after 4 steps: best validation 60 % at step 2 (step-000002), last validation 50 % at step 4 (step-000004), duration 1 h 00 m, cost 2.00 CPU hours · 1.00 M tokens.',
  );
});

test('of equally good validations, one with a checkpoint is the best, else the earliest', () => {
  const best = (checkpoints: string[]) =>
    runEnding(ended({ checkpoints, success: [[0.5, 0.1, 0.5, 0.5, 0.2]] }))!.best!.step;
  expect(best(['step-000003'])).toBe(3);
  expect(best([])).toBe(0);
  expect(endingFacts(runEnding(ended({ checkpoints: [] }))!, formats)[0][1]).toBe('60 % at step 2 (no checkpoint)');
});

test('unknown facts are left out', () => {
  const none = runEnding(ended({ steps: [], success: [], wall: [], tokens: [] }))!;
  expect(endingFacts(none, formats)).toEqual([]);
  const status = partial<RunStatus>({ state: 'stopped', step: 1, total_steps: 4 });
  const stopped = runEnding(ended({ status, steps: [], success: [], wall: [], tokens: [] }))!;
  expect(endingSentence('a', stopped, formats)).toBe('Run a was stopped after 1 step.');
});

test('the cost is in hours of the GPU on a GPU, by the cores without a number of threads, and unknown on a server', () => {
  const cost = (change: Partial<EndedRun>) => {
    const { cpuHours, gpuHours } = runEnding(ended(change))!;
    return [cpuHours, gpuHours];
  };
  expect(cost({ provider: 'cuda' })).toEqual([null, 1]);
  expect(cost({ config: { workbench: { threads: 0, device: 'cpu' } } })).toEqual([8, null]);
  expect(cost({ config: { workbench: { threads: 0 } }, cores: undefined })).toEqual([null, null]);
  expect(cost({ config: { workbench: { engine: 'tinker' } } })).toEqual([null, null]);
});

test('a run that has not ended has no ending', () => {
  for (const state of ['starting', 'running', 'paused', 'stopping'] as const)
    expect(runEnding(ended({ status: partial<RunStatus>({ state, step: 1, total_steps: 4 }) }))).toBeNull();
});
