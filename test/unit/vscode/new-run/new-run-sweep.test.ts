// Sweeps of the New Run page: parsed texts, the file, and its plan by `ragen sweep`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { readSweep } from '../../../../extension/cli/sweep/sweep-plan';
import type { NewRunChoice, SweepChoice } from '../../../../extension/protocol/new-run-page';
import { sweepFile, sweepOf, sweepProblems, type Sweep } from '../../../../extension/vscode/new-run/new-run-sweep';
import { firstChoice } from '../../../../webview/new-run/state';

vi.mock(import('../../../../extension/node/installation'), async load => {
  const { installation } = await load();
  return { installation: { ...installation, environments: resolve('envs') } };
});

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'ragen-sweep-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const lr = 'actor_rollout_ref.actor.optim.lr';
const sweepWith = (part: Partial<SweepChoice>): SweepChoice => ({ grid: [], seeds: '', jobs: '1', ...part });
const choiceWith = (part: Partial<NewRunChoice>): NewRunChoice => ({ ...firstChoice, preset: 'quickstart', ...part });
const valid = (part: Partial<SweepChoice>): Sweep => {
  const sweep = sweepOf(sweepWith(part));
  if ('problems' in sweep) throw new Error(sweep.problems[0].message);
  return sweep;
};
const problemOf = (part: Partial<SweepChoice>): string | undefined => {
  const sweep = sweepOf(sweepWith(part));
  return 'problems' in sweep ? sweep.problems[0].message : undefined;
};

describe('the texts of a sweep', () => {
  it('are values of their types, and the number of runs is that of all combinations', () => {
    const grid = [
      { key: lr, values: '1e-4, 0.001' },
      { key: 'algorithm.adv_estimator', values: 'gae, grpo, "rloo"' },
    ];
    expect(valid({ grid, seeds: '3', jobs: '2' })).toEqual({
      grid: { [lr]: [1e-4, 0.001], 'algorithm.adv_estimator': ['gae', 'grpo', 'rloo'] },
      seeds: 3,
      jobs: 2,
      runs: 18,
    });
    expect(valid({ seeds: '4, 5' })).toMatchObject({ seeds: [4, 5], runs: 2 });
  });

  it.each([
    [{ grid: [{ key: ' ', values: '1' }] }, 'Sweep: enter a configuration key for each row, or remove the row.'],
    [{ grid: [{ key: 'a b', values: '1' }] }, 'Sweep: a b is not a configuration key: write it as group.key.'],
    [
      { grid: [1, 2].map(() => ({ key: lr, values: '1' })) },
      `Sweep: ${lr} occurs twice: enter all its values in one row.`,
    ],
    [
      { grid: [{ key: lr, values: '[1' }] },
      `Sweep: the values of ${lr} are not a list: separate them by commas, such as 0.1, 0.2.`,
    ],
    [{ seeds: 'many' }, 'Sweep: the seeds are neither a number nor a list: enter 3, or 0, 1, 2.'],
    [{ jobs: '0' }, 'Sweep: the runs at a time are an integer from 1 to 64.'],
  ])('%j has a problem', (part, problem) => expect(problemOf(part)).toBe(problem));
});

test('the file of a sweep is planned by ragen sweep as the page says', () => {
  const sweep = valid({ grid: [{ key: lr, values: '1e-4, 1e-3' }], seeds: '2' });
  const choice = choiceWith({ values: { 'trainer.total_training_steps': '4' } });
  const file = join(folder, 'lr.yaml');
  writeFileSync(file, sweepFile(choice, sweep, { config_name: 'quickstart' }, 'lr'));
  const presetFolders = [resolve('media/presets')];
  const plan = readSweep(file, { workspace: folder, presetFolders, sweepFolders: [] });
  expect(plan.members).toHaveLength(sweep.runs);
  expect(plan.keys).toEqual([lr]);
  for (const { loaded } of plan.members) expect(loaded.config.trainer.total_training_steps).toBe(4);
});

test('a value that the configuration does not allow is reported with its reason', async () => {
  const sweep = valid({ grid: [{ key: lr, values: '1, -1' }] });
  const check = (overrides: string[]) =>
    overrides[0] === `${lr}=-1` ? Promise.reject(new Error('the learning rate is negative')) : Promise.resolve();
  expect(await sweepProblems(sweep, check)).toEqual([
    { key: 'sweep', message: 'Sweep: the learning rate is negative' },
  ]);
});

test('any text is a sweep or a problem', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('1, 2', '[1]', '{a: 1}', ', ', '&a [*a]', '"', '1e999', 'null'));
  fc.assert(
    fc.property(text, text, text, (values, seeds, jobs) => {
      const sweep = sweepOf(sweepWith({ grid: [{ key: lr, values }], seeds, jobs }));
      if ('problems' in sweep) expect(sweep.problems[0].key).toBe('sweep');
      else expect(sweep.runs).toBeGreaterThan(0);
    }),
  );
});
