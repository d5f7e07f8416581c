// Diagnostics that the CLI prints for a run: the regime, alarms, an early stop, and the return of validations.
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { MetricsLine } from '../../../../extension/run-data/step-lines';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import type { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { DiagnosisHistory, formatFinding, formatRegime } from '../../../../extension/cli/output/run-findings';
import { StepTable } from '../../../../extension/cli/output/step-table';
import { formatClosing, summarize } from '../../../../extension/cli/output/run-summary';
import { partial } from '../../../support/partial';

const diagnosed = (family: string, regime: number, mutual: number): Record<string, number> => ({
  [`${family}/regime`]: regime,
  [`${family}/mi_estimate`]: mutual,
  [`${family}/mi_upper_bound`]: Math.log(8),
  [`${family}/conditional_entropy_est`]: 0.5,
});
const line = (step: number, metrics: Record<string, number>): MetricsLine => ({
  step,
  time: '',
  wall_s: step,
  ...metrics,
});
const event = (kind: RunEvent['kind'], step: number, data?: Record<string, unknown>): RunEvent => ({
  time: '',
  step,
  kind,
  message: `${kind} found`,
  data,
});

const lines = [
  line(0, { 'val-env/2048/success': 0, 'val-env/charts/avg_episode_return': 8.6 }),
  line(1, diagnosed('collapse_trajectory_sample', 1, 1.5)),
  line(5, diagnosed('collapse_trajectory_sample', 1, 1.4)),
  line(10, {
    ...diagnosed('collapse_trajectory_sample', 3, 0.2),
    'val-env/2048/success': 0,
    'val-env/charts/avg_episode_return': 38.7,
  }),
];
const events = [
  event('state', 0),
  event('alarm', 9, { alarm: 'reward_variance', step: 10 }),
  event('early_stop', 10, { type: 'reward_variance' }),
];

describe('the summary of a run', () => {
  const folder = { id: 'run-1', path: '/runs/run-1' } as RunFolder;
  const summary = summarize(folder, lines, events, null);

  it('contains the return of validations, the alarms, the early stop and the latest regime', () => {
    expect(summary).toMatchObject({
      validation: [
        { step: 0, success: 0, return: 8.6 },
        { step: 10, success: 0, return: 38.7 },
      ],
      alarms: [{ step: 10, name: 'reward_variance', message: 'alarm found' }],
      early_stop: { step: 10, name: 'reward_variance', message: 'early_stop found' },
      diagnosis: { step: 10, regime: 'template collapse', mutual_information: 0.2, bound: Math.log(8), entropy: 0.5 },
    });
  });

  it('is printed at the end', () => {
    const text = formatClosing(summary, '/runs');
    expect(text).toContain('Stopped early at step 10: early_stop found');
    expect(text).toContain('Validation return 8.60 → 38.70');
    expect(text).toContain(
      'Diagnosis at step 10: template collapse (I(X;Z) 0.20 of at most 2.08 nats, H(Z|X) 0.50 nats per token)',
    );
    expect(text).toContain('Alarms: reward_variance (step 10)');
  });

  it('omits an early stop after which the run was resumed', () => {
    expect(summarize(folder, lines, [...events, event('resume', 10)], null).early_stop).toBeNull();
  });

  it('prints nothing that a run lacks', () => {
    const quiet = summarize(folder, [line(1, { 'val-env/x/success': 0.5 })], [], null);
    expect(quiet).toMatchObject({ alarms: [], early_stop: null, diagnosis: null });
    expect(formatClosing(quiet, '/runs')).not.toMatch(/return|Diagnosis|Alarms|early/);
  });
});

describe('the table of a run', () => {
  it('prints a regime when it changes, and alarms and early stops as they occur', () => {
    const out = new PassThrough();
    const table = new StepTable('step', partial<NodeJS.WriteStream>(out));
    for (const each of lines) table.row(each);
    for (const each of events) table.event(each);
    const printed = String(out.read())
      .split('\n')
      .filter(text => /^[a-z]+ /.test(text));
    expect(printed).toEqual([
      'diagnosis at step 1: diverse reasoning (I(X;Z) 1.50 of at most 2.08 nats, H(Z|X) 0.50 nats per token)',
      'diagnosis at step 10: template collapse (I(X;Z) 0.20 of at most 2.08 nats, H(Z|X) 0.50 nats per token)',
      'alarm at step 10: alarm found',
      'stopped early at step 10: early_stop found',
    ]);
  });
});

it('prefers the trajectories’ regime to the first turns’', () => {
  const both = { ...diagnosed('collapse_first_turn_sample', 2, 1), ...diagnosed('collapse_trajectory_sample', 4, 0.1) };
  expect(new DiagnosisHistory().add(5, both)?.regime).toBe('low-entropy collapse');
  expect(new DiagnosisHistory().add(5, diagnosed('collapse_first_turn_sample', 2, 1))?.regime).toBe(
    'compressed reasoning',
  );
  expect(new DiagnosisHistory().add(5, { 'actor/entropy': 1 })).toBeNull();
});

it('states no regime while most answers have no readable thought', () => {
  const lost = new DiagnosisHistory().add(5, {
    ...diagnosed('collapse_trajectory_sample', 1, 0.1),
    'thoughts/rate': 0.49,
  });
  expect(lost?.regime).toBeNull();
  expect(formatRegime(lost!)).toBe(
    'no regime, because most answers have no readable thought (I(X;Z) 0.10 of at most 2.08 nats, H(Z|X) 0.50 nats per token)',
  );
  expect(
    new DiagnosisHistory().add(5, { ...diagnosed('collapse_trajectory_sample', 1, 0.1), 'thoughts/rate': 0.5 })?.regime,
  ).toBe('diverse reasoning');
});

it('prints that a model was fetched, and no other events', () => {
  expect(formatFinding(event('download', 0))).toBe('download found');
  expect(formatFinding(event('checkpoint', 3))).toBeNull();
});
