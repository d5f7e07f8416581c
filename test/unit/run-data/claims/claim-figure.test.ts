// The figure of a claim: which panels it has, and that saved metrics give the same figure as the runs.
import { expect, test } from 'vitest';
import { claimFigure, panelsOf } from '../../../../extension/run-data/claims/claim-figure';
import { claimCsv, metricsOf, readClaimCsv } from '../../../../extension/run-data/claims/claim-metrics';
import { claimSchema } from '../../../../extension/run-data/claims/claim-schema';
import type { MeasuredRun } from '../../../../extension/run-data/claims/run-measure';
import { paperTheme } from '../../../../extension/run-data/report/report-markdown';

const information = 'collapse_trajectory_sample/mi_estimate';
const difference = { test: 'difference', arm: 'noise', against: 'calm', expect: 'lower' } as const;
const claimOf = (tests: unknown[]) => claimSchema.parse({ number: 1, title: 't', paper: 'p', tests });
const runs: MeasuredRun[] = ['calm', 'noise'].flatMap((arm, a) =>
  [1, 2, 3].map(seed => ({
    arm,
    seed,
    steps: [0, 2, 4].map(step => ({ step, success: 0.1 * step + 0.01 * seed, [information]: 1 - a * 0.2 * step })),
  })),
);

test('tests of the same measure share a panel; alarms are drawn by their metric beside the success', () => {
  const claim = claimOf([
    { ...difference, name: 'a', measure: { metric: 'success' } },
    { test: 'level', name: 'b', arm: 'noise', measure: { metric: information, take: 'kept' }, below: 0.5 },
    { ...difference, name: 'c', measure: { metric: information, from: 2 } },
    { test: 'alarms', name: 'd', arms: { collapsing: ['noise'], healthy: ['calm'] }, alarms: ['prompt_dependence'] },
  ]);
  const panels = panelsOf(claim, ['calm', 'noise']);
  expect(panels.map(({ curves }) => curves.map(({ label, measure }) => [label, measure.metric]))).toEqual([
    [['calm', 'success'], ['noise', 'success']],
    [['calm', information], ['noise', information]],
  ]); // prettier-ignore
});

test('a ratio has a panel of its own, a list of metrics one with a curve each, and many arms are divided by name', () => {
  const arms = ['PPO', 'GRPO'].flatMap(name =>
    ['none', 'top_p', 'top_k', 'random'].map(filter => `${name}, ${filter}`),
  );
  const metrics = [1, 2, 3].map(bucket => `grad_norm/bucket_${bucket}/task`);
  const claim = claimOf([
    { test: 'trend', name: 'a', arms, measure: { metric: 'success' }, expect: 'rises' },
    { test: 'trend', name: 'b', arm: arms[0], metrics, measure: { metric: metrics[0] }, expect: 'rises' },
    { test: 'level', name: 'c', arm: arms[0], measure: { metric: metrics[2], over: metrics[0] }, below: 2 },
  ]);
  const panels = panelsOf(claim, arms);
  expect(panels.map(({ title, curves }) => [title, curves.map(({ label }) => label)])).toEqual([
    ['Validation success, PPO', arms.slice(0, 4)],
    ['Validation success, GRPO', arms.slice(4)],
    ['Gradient norm, task, bucket 3 ÷ bucket 1', ['PPO, none']],
    ['Gradient norm, task, PPO, none', ['bucket 1', 'bucket 2', 'bucket 3']],
  ]);
});

test('panels of several tags, and of both sides, differ in their titles', () => {
  const claim = claimOf(
    ['val-env/Lake/success', 'train/Lake/success', 'val-env/Cube/success', 'val-env/response_length'].map(metric => ({
      ...difference,
      ...{ name: metric, measure: { metric } },
    })),
  );
  expect(panelsOf(claim, ['calm', 'noise']).map(({ title }) => title)).toEqual([
    ...['Success, validation, Lake', 'Success, training, Lake', 'Success, validation, Cube'],
    'Response length per episode',
  ]);
});

test('saved metrics give the figure of the runs, with a line and a band for each arm', () => {
  const claim = claimOf([{ ...difference, name: 'a', measure: { metric: 'success' } }]);
  const figure = claimFigure(claim, runs, paperTheme)!;
  expect(claimFigure(claim, readClaimCsv(claimCsv(runs, metricsOf(claim))), paperTheme)).toBe(figure);
  expect(figure.match(/fill-opacity="0.14"/g)).toHaveLength(2);
  expect(figure.match(/stroke-opacity="0.32"/g)).toHaveLength(6);
  expect(figure).toContain('>calm</text>');
});

test('a claim without values has no figure', () => {
  const claim = claimOf([{ ...difference, name: 'a', measure: { metric: 'success' } }]);
  expect(claimFigure(claim, [], paperTheme)).toBeUndefined();
});

test('correlations are drawn as dots, one for each step with both values, and equal pairs once', () => {
  const correlation = { test: 'correlation', expect: 'positive' } as const;
  const claim = claimOf([
    { ...correlation, name: 'a', x: information, against: 'actor/entropy' },
    { ...correlation, name: 'b', x: information },
  ]);
  const withEntropy = runs.map(run => ({
    ...run,
    steps: run.steps.map(({ step, success, ...rest }) => ({ step, success, 'actor/entropy': 2 + step, ...rest })),
  }));
  const [first, ...others] = withEntropy;
  const partial = { ...first, steps: first.steps.map(step => (step.step === 2 ? { ...step, success: NaN } : step)) };
  const figure = claimFigure(claim, [partial, ...others], paperTheme)!;
  const dots = [...figure.matchAll(/<path d="((?:M\d+ \d+h0)+)"/g)].map(([, path]) => path.split('M').length - 1);
  expect(dots).toEqual([17, 17]); // 6 runs of 3 steps, one without success
  expect([...figure.matchAll(/<title>(.*?)<\/title>/g)].map(([, title]) => title)).toEqual([
    expect.stringContaining('against Mutual information'),
    expect.stringContaining('against Entropy'),
  ]);
});
