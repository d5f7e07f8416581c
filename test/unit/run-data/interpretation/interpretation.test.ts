// The interpretation shown on the Collapse page: on the real runs of the experiments, and case by case.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CollapseSettings, FilterSettings } from '../../../../extension/run-data/collapse-settings';
import {
  circumstancesAt,
  evidenceOf,
  evidenceUpTo,
  type Circumstances,
  type Evidence,
} from '../../../../extension/run-data/interpretation/evidence';
import { interpret } from '../../../../extension/run-data/interpretation/interpretation';
import { judgedPath, type PathPoint } from '../../../../extension/run-data/collapse-path';
import { RunSeries, type FamilyName } from '../../../../extension/run-data/interpretation/run-series';
import { storedFiles } from '../../../e2e/fixtures/stored-run.mjs';

const keepsAll: FilterSettings = {
  strategy: 'top_p',
  value: 1,
  type: 'largest',
  metric: 'reward_variance',
  include_zero: true,
  top_p_prob_mode: 'linear',
  dynamic_sampling: false,
  normalised: false,
};

const nothingKnown: Circumstances = { filter: null, policy: null, changes: [], checkpoints: null, missing: null };
const evidenceAt = (series: RunSeries, family: string, step: number, filter: FilterSettings | null) =>
  evidenceUpTo(evidenceOf(series, family), step, { ...nothingKnown, filter });

const seriesOf = (name: string): RunSeries => {
  const series = new RunSeries();
  series.append(
    storedFiles(name)
      ['metrics.jsonl'].split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as { step: number }),
  );
  return series;
};

describe('the run driven into collapse', () => {
  const series = seriesOf('collapsing-run');
  const at = (step: number, family: FamilyName = 'collapse_first_turn_sample') =>
    interpret(evidenceAt(series, family, step, keepsAll));

  it('starts like any run, without alarms', () => {
    expect(at(1)).toMatchObject({
      headline: 'Reasoning has begun to depend on the prompt',
      confidence: 'low',
      why: '“diverse reasoning” has a probability of 100 %; this is the first diagnosis; the reasoning contains little information about its prompt',
      signs: [],
      advice: [{ anchor: 'collapse', text: 'Wait for more diagnoses: every run starts in this state' }],
    });
  });

  it('learns to depend on the prompt', () => {
    const interpretation = at(30);
    expect(interpretation.headline).toBe(
      'Reasoning still differs between prompts, but under one prompt it hardly varies',
    );
    expect(interpretation.why).toContain('the interval of H(Z|X) (0.119 to 0.329) contains its threshold 0.300');
    expect(interpretation.signs).toEqual([]);
    expect(interpretation.advice[0].text).toMatch(/^While success rises, change nothing/);
  });

  it('shows the Echo Trap’s first sign sixteen steps before validation has fallen', () => {
    expect(at(50).signs.map(({ kind, step }) => [kind, step])).toEqual([['echo trap', 42]]);
    expect(
      at(50)
        .advice.map(({ text }) => text)
        .join(),
    ).toContain('set rollout_filter_value to 0.9');
    const later = at(60).signs;
    expect(later.map(({ kind, step }) => [kind, step])).toEqual([
      ['validation', 58],
      ['echo trap', 42],
    ]);
    expect(later[0].text).toBe(
      'Validation success fell from 63.0 % (around step 22) to 43.8 % (means of 3 validations)',
    );
  });

  it('ends compressed, with permanently reduced mutual information', () => {
    const interpretation = at(90);
    expect(interpretation.headline).toBe(
      'Reasoning still differs between prompts, but under one prompt it hardly varies',
    );
    expect(interpretation.sentence).toBe(
      'Mutual information is 0.852 of at most 2.77 nats, retrieval accuracy is 85.9 % (chance: 6.3 %); the entropy under one prompt is 0.139 nats per token, and has been under half of its first value (1.69 at step 1) since step 10 (means of 3 diagnoses); mutual information has been under 85 % of its best value since step 64 (best 1.16 around step 48, now 0.807, means of 3 diagnoses).',
    );
    expect(interpretation.advice[0]).toMatchObject({ anchor: 'the-task' });
    expect(at(90, 'collapse_trajectory_sample').headline).toBe(
      'Reasoning still differs between prompts, but under one prompt it hardly varies',
    );
  });

  it('reports a family that was not diagnosed', () => {
    expect(at(90, 'collapse_turn_sample')).toMatchObject({
      headline: 'It is not known yet whether the reasoning depends on the prompt',
      sentence: '',
      confidence: 'none',
    });
  });

  it('uses nothing after the step', () => {
    const early = new RunSeries();
    early.append(
      storedFiles('collapsing-run')
        ['metrics.jsonl'].split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as { step: number })
        .filter(({ step }) => step <= 44),
    );
    expect(interpret(evidenceAt(early, 'collapse_first_turn_sample', 44, null))).toEqual(
      interpret(evidenceAt(series, 'collapse_first_turn_sample', 44, null)),
    );
  });
});

describe('a run whose answers lost the format', () => {
  const lost = pathOf([[6.5, 0.1]], { thoughts: 0.1 });

  it('has no regime and no confidence', () => {
    expect(interpret(evidence(lost))).toMatchObject({
      headline: 'The reasoning cannot be judged, because most answers have no readable thought',
      confidence: 'none',
      why: '10.0 % of the answers at step 1 have a readable thought',
    });
    expect(interpret(evidence(pathOf([[6.5, 0.1]]))).confidence).not.toBe('none');
  });
});

/** A path with the given values; intervals are narrow by default. */
const pathOf = (
  values: [entropy: number, information: number, retrieval?: number][],
  { prompts = 16, width = 0.01, thoughts = 1 } = {},
): PathPoint[] =>
  judgedPath(
    values.map(([entropy, information, retrieval = 0.9], i) => {
      const around = (value: number) => ({ value, low: value - width, high: value + width });
      return {
        step: 5 * i + 1,
        entropy: around(entropy),
        information: around(information),
        bound: Math.log(prompts),
        retrieval: around(retrieval),
        chance: 1 / prompts,
        thoughts,
      };
    }),
  );
const evidence = (path: PathPoint[], more: Partial<Evidence> = {}): Evidence => ({
  path,
  ...nothingKnown,
  rewardStd: [],
  tokenEntropy: [],
  gradientNorm: [],
  invalidAnswers: [],
  success: [],
  validation: [],
  thinking: [],
  ...more,
});
const steady = (count: number, value: [number, number, number?]) => Array.from({ length: count }, () => value);
const points = (values: number[]) => values.map((value, i) => ({ step: i + 1, value }));

describe('a healthy run', () => {
  it('is described with certainty when intervals are clear and diagnoses agree', () => {
    const interpretation = interpret(evidence(pathOf(steady(6, [1, 1.5]))));
    expect(interpretation).toMatchObject({
      headline: 'Reasoning differs between prompts and still varies under each of them',
      confidence: 'high',
      why: '“diverse reasoning” has a probability of 99.9 %; the last 5 diagnoses agree; 16 prompts were compared',
    });
  });

  it('is described with less certainty for few prompts, wide intervals or few diagnoses', () => {
    const interpreted = (path: PathPoint[]) => {
      const { confidence, why } = interpret(evidence(path));
      return [confidence, why];
    };
    const sure = '“diverse reasoning” has a probability of 99.9 %';
    expect(interpreted(pathOf(steady(6, [1, 1.5]), { prompts: 4 }))).toEqual([
      'low',
      `${sure}; only 4 prompts were compared`,
    ]);
    expect(interpreted(pathOf(steady(6, [0.32, 1.5]), { width: 0.05 }))).toEqual([
      'low',
      '“diverse reasoning” has a probability of 68.4 %; the interval of H(Z|X) (0.270 to 0.370) contains its threshold 0.300',
    ]);
    expect(interpreted(pathOf(steady(2, [1, 1.5])))).toEqual(['low', `${sure}; there are only two diagnoses`]);
    expect(interpreted(pathOf(steady(4, [1, 1.5])))[0]).toBe('moderate');
    expect(interpreted(pathOf(steady(6, [1, 1.5]), { width: NaN }))[1]).toContain(
      'mutual information has no interval; H(Z|X) has no interval',
    );
  });
});

describe('the collapses of RAGEN-2', () => {
  const rise = steady(5, [1, 1.5]);
  it.each<[string, [number, number, number?], RegExp]>([
    ['template collapse', [1, 0.1, 0.1], /^Reasoning no longer depends on the prompt/],
    ['low-entropy collapse', [0.05, 0.1, 0.1], /^Reasoning has become nearly the same text/],
    ['compressed reasoning', [0.05, 1.5], /hardly varies$/],
    ['a fall within what counts as high', [1, 0.9], /^Reasoning still differs between prompts, but less than it did$/],
    ['prompts that are still found again', [1, 0.5, 0.8], /^Reasoning still differs between prompts, but less/],
    ['information that has fallen a little', [1, 1.1, 0.4], /^Reasoning still differs between prompts, but less/],
  ])('are recognized: %s', (_, value, headline) => {
    expect(interpret(evidence(pathOf([...rise, ...steady(5, value)]))).headline).toMatch(headline);
  });

  it('are not diagnosed when there was nothing to lose', () => {
    expect(interpret(evidence(pathOf(steady(8, [1, 0.02, 0.1])))).headline).toMatch(
      /^Reasoning does not depend .* yet$/,
    );
    expect(interpret(evidence(pathOf(steady(8, [0.05, 0.02, 0.1])))).headline).toMatch(/from the start$/);
    expect(interpret(evidence(pathOf(steady(8, [1, 0.3, 0.2])))).headline).toMatch(/^Reasoning has begun to depend/);
  });
});

describe('signs', () => {
  const path = pathOf(steady(6, [1, 1.5]));
  const kinds = (more: Partial<Evidence>) => interpret(evidence(path, more)).signs.map(({ kind }) => kind);
  const fall = [...Array<number>(12).fill(0.5), ...Array<number>(20).fill(0.1)];

  it('distinguish a solved task from an Echo Trap', () => {
    expect(kinds({ rewardStd: points(fall), success: points(fall.map(() => 0.4)) })).toEqual(['echo trap']);
    expect(kinds({ rewardStd: points(fall), success: points(fall.map(() => 0.97)) })).toEqual(['solved']);
    expect(
      interpret(evidence(path, { rewardStd: points(fall), success: points(fall.map(() => 0.97)) })).advice[0].text,
    ).toMatch(/^Change nothing/);
  });

  it('include a gradient spike for twenty steps, lost formats, near-zero token entropy and missing thoughts', () => {
    const spiked = [...Array<number>(30).fill(1), 15, ...Array<number>(19).fill(1)];
    expect(kinds({ gradientNorm: points(spiked) })).toEqual(['spike']);
    expect(kinds({ gradientNorm: points([...spiked, 1]) })).toEqual([]);
    expect(kinds({ invalidAnswers: points([0.1, 0.8, 0.9, 0.9]) })).toEqual(['format']);
    expect(kinds({ tokenEntropy: points(fall) })).toEqual(['entropy']);
    expect(kinds({ thinking: points([1, 0.4]) })).toEqual(['thoughts']);
  });
});

describe('advice', () => {
  const path = pathOf([...steady(5, [1, 1.5]), ...steady(5, [1, 0.1, 0.1])]);
  const narrow = pathOf(steady(8, [0.05, 1.5]));
  const fall = [...Array<number>(6).fill(0.6), ...Array<number>(6).fill(0.3)].map((value, i) => ({
    step: 10 * i,
    value,
  }));
  const advice = (of: PathPoint[], more: Partial<Evidence>) =>
    interpret(evidence(of, more)).advice.map(({ text }) => text);
  const policy = { kl_loss_coef: 0, kl_coef: 0, entropy_coeff: 0.001, adv_estimator: 'grpo', clip_ratio_high: 0.28 };

  it('names no term that is off', () => {
    const last = (more: Partial<Evidence>) => advice(path, more).at(-1);
    expect(last({})).toMatch(/^Reduce the KL and entropy terms: .* only these terms change the policy$/);
    expect(last({ policy })).toMatch(/^Reduce the entropy term: .* only this term changes the policy$/);
    expect(last({ policy: { ...policy, entropy_coeff: 0 } })).not.toContain('Lessen');
    const std = points([...Array<number>(12).fill(0.5), ...Array<number>(20).fill(0.1)]);
    expect(advice(path, { rewardStd: std, policy })).toContain(
      'Settings that counter the Echo Trap: a critic (GAE) instead of group means',
    );
  });

  it('goes back to an existing checkpoint from before the fall', () => {
    const back = (checkpoints: number[] | null) => advice(path, { validation: fall, checkpoints })[0];
    expect(back([10, 50, 60, 100])).toMatch(
      /^Resume from the checkpoint of step 50 \(the newest before the fall\), because /,
    );
    expect(back([110])).toMatch(/^No checkpoint before step \d+ is left to resume from: .*workbench\.keep_checkpoints/);
    expect(back(null)).toMatch(/^Resume from a checkpoint before step \d+, if one still exists/);
  });

  it('accepts a low-entropy policy only while success has not fallen', () => {
    expect(advice(narrow, {})[0]).toMatch(/^While success rises, change nothing/);
    const interpreted = advice(narrow, { validation: fall });
    expect(interpreted.join()).not.toContain('change nothing');
    expect(interpreted).toContain(
      'Raise temperature or entropy_coeff: success has fallen while answers to one prompt hardly vary',
    );
  });

  it('suspects only a setting changed shortly before a fall', () => {
    const change = (step: number) => ({ key: 'actor_rollout_ref.actor.optim.lr', from: 1e-6, to: 1e-5, step });
    const signs = (step: number) => interpret(evidence(path, { validation: fall, changes: [change(step)] })).signs;
    expect(signs(45).map(({ kind, step }) => [kind, step])).toEqual([
      ['validation', 60],
      ['setting', 45],
    ]);
    expect(signs(45)[1].text).toMatch(
      /^actor_rollout_ref\.actor\.optim\.lr was changed from .* to .* after step 45, shortly before/,
    );
    expect(signs(70).map(({ kind }) => kind)).toEqual(['validation']);
    expect(advice(path, { validation: fall, changes: [change(45)] })).toContain(
      'Reset actor_rollout_ref.actor.optim.lr to its earlier value and check whether the metrics recover',
    );
  });

  it('depends on the step: changed weights, and checkpoints before it', () => {
    const setting = (step: number, key: string, to: number) =>
      ({ time: '', step, kind: 'setting', message: '', data: { key, from: 0.001, to } }) as const;
    const events = [
      setting(5, 'actor_rollout_ref.actor.entropy_coeff', 0),
      setting(9, 'actor_rollout_ref.actor.optim.lr', 1),
    ];
    const settings = { policy, filter: keepsAll } as CollapseSettings;
    const at = (step: number) =>
      circumstancesAt({ settings, events, checkpoints: [4, 8] }, step, 'collapse_first_turn_sample');
    expect([at(4).policy?.entropy_coeff, at(6).policy?.entropy_coeff]).toEqual([0.001, 0]);
    expect([at(6).changes.length, at(9).changes.length, at(6).checkpoints]).toEqual([1, 2, [4]]);
  });
});

it('links only to existing headings of the guide', () => {
  const guide = readFileSync(join(__dirname, '../../../../docs/METRICS.md'), 'utf8');
  const anchors = [...guide.matchAll(/^## (.+)$/gm)].map(([, title]) => title.toLowerCase().replaceAll(' ', '-'));
  for (const anchor of ['in-what-order-to-look', 'the-task', 'policy', 'rollout-filter', 'rollout', 'collapse'])
    expect(anchors).toContain(anchor);
});
