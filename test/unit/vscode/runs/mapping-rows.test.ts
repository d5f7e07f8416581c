// The form in which a proposed mapping is corrected.
import { expect, it } from 'vitest';
import { nameInTable } from '../../../../extension/run-data/charts/metric-names';
import type { MappingProposal } from '../../../../extension/run-data/mapping-proposal';
import {
  choicesOf,
  metricChoices,
  previewOf,
  rowsOf,
  withField,
  withMetric,
} from '../../../../extension/vscode/runs/mapping-rows';

const rollouts: MappingProposal = {
  file: 'rollouts.jsonl',
  contents: 'rollouts',
  fields: [
    { path: 'it', kind: 'number', samples: ['1', '2'], metric: 'it' },
    { path: 'answer', kind: 'text', samples: ['Down'] },
    { path: 'points', kind: 'number', samples: ['0.5'], metric: 'points' },
  ],
  mapping: { fields: { step: 'it', completion: 'answer' } },
};

it('rollouts have a row for each meaning, metrics a row for each number', () => {
  expect(rowsOf(rollouts).map(row => (row.kind === 'field' ? row.meaning : row.metric))).toContain('reward');
  const metrics = rowsOf({ ...rollouts, contents: 'metrics' });
  expect(metrics).toEqual([
    { kind: 'field', meaning: 'step' },
    { kind: 'field', meaning: 'time' },
    { kind: 'metric', metric: 'it' },
    { kind: 'metric', metric: 'points' },
  ]);
});

it('fields of a usual kind are offered first, and none is left out', () => {
  expect(choicesOf('completion', rollouts.fields).map(({ path }) => path)).toEqual(['answer', 'it', 'points']);
  expect(choicesOf('reward', rollouts.fields).map(({ path }) => path)).toEqual(['it', 'points', 'answer']);
});

it('a correction changes one row, and the preview shows it', () => {
  expect(previewOf(rollouts)).toBe('step 1 · completion “Down”');
  const mapping = withField(rollouts.mapping, 'reward', 'points');
  expect(previewOf({ ...rollouts, mapping })).toBe('step 1 · completion “Down” · reward 0.5');
  expect(withField(mapping, 'step', null).fields).toEqual({ step: '', completion: 'answer', reward: 'points' });
  expect(withMetric({ metrics: { a: 'b' } }, 'c', 'd').metrics).toEqual({ a: 'b', c: 'd' });
  expect(withMetric({ metrics: { a: 'b' } }, 'a', null).metrics).toEqual({});
});

it('the offered names are documented metrics', () => {
  expect(metricChoices.filter(key => nameInTable(key) === undefined)).toEqual([]);
});
