// @vitest-environment happy-dom
// Computed parts of the Collapse page: the description of the filter, the drawn matrix, the caption of gradients, paths
// and lines.
import { describe, expect, it } from 'vitest';
import type { FilterSettings } from '../../../../extension/run-data/collapse-settings';
import type { PromptGroup } from '../../../../extension/protocol/collapse-page';
import type { CollapseFamily } from '../../../../extension/run-data/diagnostics';
import { filterAt } from '../../../../extension/run-data/collapse-settings';
import { formatFilter, judgedGroups } from '../../../../webview/collapse/step/format-filter';
import { gradientCaption, type GradientAnalysis } from '../../../../webview/collapse/step/gradient-caption';
import { matrixOf } from '../../../../webview/collapse/step/matrix';
import { pathOf, reached, RunSeries } from '../../../../extension/run-data/interpretation/run-series';
import { StepFetcher } from '../../../../webview/collapse/step/step-fetcher';
import { missingFamily } from '../../../../extension/run-data/interpretation/missing-family';
import { missingGradients } from '../../../../webview/collapse/switched-off';
import { differingParts } from '../../../../webview/collapse/step/prompt-diff';
import { thinned } from '../../../../webview/collapse/plane/unit-square';

const filter: FilterSettings = {
  strategy: 'top_p',
  value: 0.9,
  type: 'largest',
  metric: 'reward_variance',
  include_zero: false,
  top_p_prob_mode: 'linear',
  dynamic_sampling: false,
  normalised: false,
};
const group = (group_id: number, scores: number[], kept: boolean | null = true): PromptGroup => ({
  group_id,
  tag: 'Lake',
  kept,
  episodes: scores.map((score, member) => ({
    id: `e${group_id}${member}`,
    member,
    score,
    success: score > 0,
    tokens: 10 * (member + 1),
  })),
});

describe('the description of the filter', () => {
  const groups = [group(0, [0, 0], false), group(1, [0, 2]), group(2, [0, 1]), group(3, [0, 0.2], false)];

  it('contains rule and count', () => {
    expect(formatFilter(filter, groups)).toBe(
      'top_p 0.9 of reward variance (linear): kept 2 of 4; groups whose reward variance is zero are dropped first',
    );
    expect(
      formatFilter({ ...filter, strategy: 'top_k', value: 0.5, include_zero: true, metric: 'entropy' }, groups),
    ).toBe('top_k 0.5, the 2 groups with the largest entropy: kept 2 of 4');
    expect(formatFilter({ ...filter, value: 1, include_zero: true }, groups)).toBe('No filter (top_p 1): kept 2 of 4');
    expect(
      formatFilter({ ...filter, strategy: 'min_p', value: 0.1, include_zero: true, dynamic_sampling: true }, groups),
    ).toMatch(/^min_p 0.1 of the best reward variance: kept 2 of 4; then groups without a learning signal/);
    expect(formatFilter(filter, [group(0, [1], null)])).toContain('the kept groups are not recorded');
    expect(formatFilter(null, groups)).toBe('The filter’s configuration is not known: kept 2 of 4');
  });

  it('includes settings changed before the step', () => {
    const change = (step: number, key: string, to: number) => ({
      time: '',
      step,
      kind: 'setting' as const,
      message: '',
      data: { key, from: 0, to },
    });
    const value = 'actor_rollout_ref.rollout.rollout_filter_value';
    const events = [change(3, value, 0.5), change(4, 'trainer.total_training_steps', 99), change(7, value, 0.2)];
    expect([3, 4, 7, 8].map(step => filterAt(filter, events, step)?.value)).toEqual([0.9, 0.5, 0.5, 0.2]);
    expect(filterAt(null, events, 8)).toBeNull();
  });

  it('gives each group its standard deviation and a reason, largest deviation first', () => {
    const judged = judgedGroups(filter, groups);
    expect(judged.map(({ group_id, why }) => [group_id, why])).toEqual([
      [1, 'rank 1; the groups up to this rank have 62.5 % of the metric’s sum over all groups'],
      [2, 'rank 2; the groups up to this rank have 93.7 % of the metric’s sum over all groups'],
      [3, 'rank 3; the groups before this rank already have 93.7 % of the metric’s sum over all groups'],
      [0, 'all 2 episodes score 0'],
    ]);
    expect(judged[0].std).toBeCloseTo(Math.SQRT2);
  });

  it('explains nothing that is not in the files', () => {
    for (const settings of [null, { ...filter, normalised: true }, { ...filter, metric: 'entropy_variance' }])
      expect(judgedGroups(settings, groups).map(({ why }) => why)).toEqual(['', '', '', '']);
    expect(judgedGroups({ ...filter, metric: 'length', strategy: 'top_k' }, groups)[0].why).toBe('rank 2');
    expect(judgedGroups(filter, [group(5, [1])])[0]).toMatchObject({ std: 0, why: 'all 1 episodes score 1' });
  });
});

describe('the matrix', () => {
  const family: CollapseFamily = {
    name: 'collapse_first_turn_sample',
    prompts: ['a', 'b'].map(text => ({ text, tokens: 1 })),
    samples: [1, 0, 1].map((column, i) => ({ episode: `e${i}`, group: column, turn: 1, text: `z${i}` })),
    log_probs_per_token: [
      [-3, -1],
      [-1, -2],
      [-1, -1.5],
    ],
    lengths: [1, 1, 1],
    column: [1, 0, 1],
    signatures: [0, 1],
    metrics: {},
    regime: 'diverse reasoning',
  };

  it('orders rows by their prompts and compares with the own prompt', () => {
    expect(matrixOf(family)).toEqual({
      order: [1, 0, 2],
      against: [
        [0, -1],
        [-2, 0],
        [0.5, 0],
      ],
      own: [0, 1, 1],
      best: [0, 1, 0],
      scale: 1,
    });
  });
});

describe('the plane', () => {
  const series = new RunSeries();
  const f = 'collapse_first_turn_sample';
  const values = (h: number, i: number) => ({
    [`${f}/conditional_entropy_est`]: h,
    [`${f}/mi_estimate`]: i,
    [`${f}/mi_upper_bound`]: Math.log(16),
  });
  series.append([{ step: 0 }, { step: 1, ...values(1, 0.2) }, { step: 2 }, { step: 3, ...values(0.1, 1) }]);

  it('draws the diagnosed steps as its path', () => {
    const path = pathOf(series, f);
    expect(path.map(({ step, entropy, information }) => [step, entropy.value, information.value])).toEqual([
      [1, 1, 0.2],
      [3, 0.1, 1],
    ]);
    expect([0, 1, 2, 3, 9].map(step => reached(path, step))).toEqual([0, 1, 1, 2, 2]);
    expect([-1, 0, 2, 9].map(step => series.rowAt(step))).toEqual([-1, 0, 2, 3]);
    expect(path.map(({ judgement }) => judgement.regime)).toEqual(['diverse reasoning', 'diverse reasoning']);
  });
});

it('a long line keeps the extremes of each segment', () => {
  const values = Float64Array.from({ length: 10_000 }, (_, i) => (i === 5001 ? 99 : i === 7003 ? -99 : Math.sin(i)));
  const rows = thinned(values);
  expect(rows.length).toBeLessThanOrEqual(800);
  expect(rows).toEqual(rows.toSorted((a, b) => a - b));
  expect(rows).toContain(5001);
  expect(rows).toContain(7003);
  expect(thinned([1, NaN, 2])).toEqual([0, 2]);
});

describe('the caption of gradients', () => {
  const analysis = (task: number[], entropy: number[], snr: number | null = 5): GradientAnalysis => ({
    name: 'grad_norm',
    parts: ['task', 'entropy'],
    buckets: task.map((norm, i) => ({
      name: `bucket_${i + 1}`,
      groups: [{ group_id: i, reward_std: i / 2 }],
      samples: 8,
      tokens: 100,
      gradients: [
        { norm, snr },
        { norm: entropy[i], snr: null },
      ],
      metrics: {},
    })),
    cosines: [],
  });

  it('says whether deviation carries signal, and what moves the policy where it is small', () => {
    expect(gradientCaption(analysis([0.1, 0.9], [0.2, 0.2]))).toBe(
      'The task’s gradient rises from 0.100 where scores differ least (deviation 0) to 0.900 where they differ most (deviation 0.500): reward deviation carries signal. In the lowest bucket, entropy outweighs the task’s gradient: there, the regularisers dominate the update.',
    );
    expect(gradientCaption(analysis([0.5, 0.5], [0.1, 0.1]))).toMatch(/hardly changes.*cannot help much\.$/);
    expect(gradientCaption(analysis([0.9, 0.1], [0.01, 0.01], 0.8))).toMatch(
      /falls.*cannot be distinguished from noise \(signal-to-noise ratio 0.800\)\.$/,
    );
    expect(gradientCaption(analysis([0.9], [0.1]))).toBe('Only one bucket: nothing to compare.');
  });
});

describe('prompts', () => {
  it('are distinguished by the lines that they do not share', () => {
    expect(differingParts(['rules\nA\nmap\nanswer', 'rules\nB\nmap\nanswer'])).toEqual([
      { before: 'rules', own: 'A', after: 'map\nanswer' },
      { before: 'rules', own: 'B', after: 'map\nanswer' },
    ]);
    expect(differingParts(['x\ny', 'x\ny'])[0]).toEqual({ own: 'x\ny', before: '', after: '' });
    expect(differingParts(['x', 'x\nx']).map(({ own }) => own)).toEqual(['x', 'x\nx']);
  });
});

describe('a missing measurement', () => {
  const settings = {
    first_turn: false,
    multi_turn: true,
    turn_uniform: false,
    compute_freq: 2,
    context_window_mode: 'full',
    gradients: false,
    gradients_every: 50,
    watch: true,
    trainer: null,
    filter: null,
    policy: null,
  };
  it('names the override that enables it', () => {
    expect(missingFamily(settings, 'collapse_first_turn_sample').override).toBe(
      'collapse_detection.first_turn_enabled=true',
    );
    expect(missingFamily(settings, 'collapse_trajectory_sample')).toEqual({
      text: 'No diagnosis up to this step: the run makes one at step 1 and at every 2nd step.',
    });
    expect(missingFamily({ ...settings, context_window_mode: 'single_turn' }, 'collapse_turn_sample').override).toBe(
      'agent_proxy.context_window_mode=full',
    );
    expect(missingGradients(settings).override).toBe('trainer.gradient_analysis_mode=true');
    expect(missingGradients({ ...settings, gradients: true }).override).toBeUndefined();
  });
});

describe('the loader of a step’s file', () => {
  const settle = () => new Promise(resolve => setImmediate(resolve));
  it('requests the latest wish after the pending one, and caches answers', async () => {
    const asked: number[] = [];
    const shown: number[] = [];
    const failed: number[] = [];
    const fetcher = new StepFetcher<{ step: number }, number>(
      async ({ step }) => {
        asked.push(step);
        await settle();
        if (step === 13) throw new Error('torn');
        return step * 10;
      },
      (_, answer) => shown.push(answer),
      ({ step }) => failed.push(step),
    );
    for (const step of [1, 2, 3]) fetcher.ask({ step });
    await settle();
    await settle();
    await settle();
    expect(asked).toEqual([1, 3]);
    expect(shown).toEqual([30]);
    fetcher.ask({ step: 1 });
    fetcher.ask({ step: 1 });
    expect([asked, shown]).toEqual([
      [1, 3],
      [30, 10],
    ]);
    fetcher.ask({ step: 13 });
    await settle();
    await settle();
    expect(failed).toEqual([13]);
    fetcher.ask({ step: 13 }); // has failed: repeated only after `retry`
    expect(asked.filter(step => step === 13)).toHaveLength(1);
    fetcher.retry();
    fetcher.ask({ step: 13 });
    await settle();
    await settle();
    expect(failed).toEqual([13, 13]);
    fetcher.ask({ step: 7 });
    fetcher.ask(null); // nothing is requested any more: the answer is not shown
    await settle();
    await settle();
    expect(shown).toEqual([30, 10]);
    fetcher.forget();
    fetcher.ask({ step: 3 });
    await settle();
    await settle();
    expect(asked.at(-1)).toBe(3);
  });
});
