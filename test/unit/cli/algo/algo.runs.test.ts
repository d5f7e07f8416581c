// `ragen algo`: each function on vectors computed by hand or with PyTorch, in the order of the cases; a refusal is one
// sentence with the index of the case.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { configJsonSchema } from '../../../../extension/trainer/config/schema';
import { addAlgo, evaluateCases } from '../../../../extension/cli/algo/algo';
import { refusalOf } from '../../../support/refusal';

const evaluate = <T>(name: string, ...cases: unknown[]): T[] =>
  evaluateCases(name, JSON.stringify(cases), 'cases.json') as T[];
interface Advantages {
  advantages: number[][];
  returns: number[][];
}
const advantage = (input: Record<string, unknown>): Advantages => evaluate<Advantages>('advantage', input)[0];
const refusal = (name: string, ...cases: unknown[]): string => refusalOf(() => evaluate(name, ...cases));

/** Numbers in any nesting, within 1e-5 relative. */
function expectClose(actual: unknown, expected: unknown): void {
  if (typeof expected === 'number')
    expect(Math.abs((actual as number) - expected), `${actual} is ${expected}`).toBeLessThan(
      1e-5 * Math.max(1, Math.abs(expected)),
    );
  else {
    expect(actual).toHaveLength((expected as unknown[]).length);
    (expected as unknown[]).forEach((part, i) => expectClose((actual as unknown[])[i], part));
  }
}

type Golden = Record<string, { case: Record<string, unknown>; result: Record<string, unknown> }[]>;
const golden = JSON.parse(readFileSync('test/golden/algorithms.json', 'utf8')) as Golden;

describe('PyTorch in float32 (test/golden/make/algorithms.py)', () => {
  const all = Object.entries(golden).flatMap(([name, cases]) => cases.map((one, i) => ({ name, i, ...one })));
  it.each(all)('agrees on $name $i', ({ name, case: input, result }) => {
    const [found] = evaluate<Record<string, unknown>>(name, input);
    expect(Object.keys(found).toSorted()).toEqual(Object.keys(result).toSorted());
    for (const [key, expected] of Object.entries(result)) {
      const value = name === 'advantage' ? masked(found[key] as number[][], input.mask as number[][]) : found[key];
      expectClose(value, expected);
    }
  });

  function masked(rows: number[][], mask: number[][]): number[][] {
    return rows.map((row, r) => row.map((x, t) => x * mask[r][t]));
  }
});

describe('advantage', () => {
  const gae = {
    estimator: 'gae',
    rewards: [[0, 0, 0, 0, 0, 0, 0, 1]],
    values: [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]],
    mask: [[1, 1, 1, 0, 0, 1, 1, 1]],
    gamma: 1,
  };

  it('of gae is computed raw and whitened', () => {
    const raw = advantage({ ...gae, lam: 0.95, whiten: false });
    expectClose(raw.advantages, [[0.787694, 0.723889, 0.656725, 0.3755, 0.3755, 0.3755, 0.29, 0.2]]);
    expectClose(raw.returns, [[0.887694, 0.923889, 0.956725, 0.7755, 0.8755, 0.9755, 0.99, 1]]);
    const { advantages } = advantage({ ...gae, lam: 1 });
    // .9, .8, .7, .4, .3, .2 with mean .55 and unbiased variance .083
    const unit = (x: number): number => x / Math.sqrt(0.083);
    expectClose(advantages, [[0.35, 0.25, 0.15, 0, 0, -0.15, -0.25, -0.35].map(unit)]);
  });

  it('of gae puts a score on the last sampled token', () => {
    const { rewards: _, ...others } = gae;
    expectClose(advantage({ ...others, scores: [1], lam: 1, whiten: false }).advantages, [
      [0.9, 0.8, 0.7, 0.4, 0.4, 0.4, 0.3, 0.2],
    ]);
  });

  const biLevel = {
    estimator: 'gae',
    bi_level_gae: true,
    rewards: [[0, 0, 0, 0, 1, 0, 0, 0, 0, 1]],
    values: [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]],
    gamma: 1,
    high_level_gamma: 0.95,
    whiten: false,
  };
  it.each([{ turn_ends: [[4, 9]] }, {}])('of bi-level gae is computed with %o', ends => {
    const plain = advantage({ ...biLevel, ...ends, lam: 1 });
    expectClose(plain.advantages, [[1.85, 1.75, 1.65, 1.55, 1.45, 0.4, 0.3, 0.2, 0.1, 0]]);
    expectClose(plain.returns, [[1.95, 1.95, 1.95, 1.95, 1.95, 1, 1, 1, 1, 1]]);
    const gaps = advantage({ ...biLevel, ...ends, lam: 0.95, mask: [[1, 1, 1, 1, 1, 0, 0, 1, 1, 1]] });
    expectClose(gaps.advantages, [[1.552022, 1.528444, 1.503625, 1.4775, 1.45, 0, 0, 0.195, 0.1, 0]]);
  });

  it('of bi-level gae without any reward is defined under RAGEN’s rule too', () => {
    const nothing = { ...biLevel, rewards: [[0, 0]], values: [[0.5, 0.25]], lam: 1 };
    expectClose(advantage(nothing).advantages, [[-0.5, -0.25]]);
    expectClose(
      advantage({ ...nothing, turn_ends: [[0, 1]] }).advantages,
      [[-0.5, -0.25]].map(() => [0.95 * 0.25 - 0.5 - 0.95 * 0.25, -0.25]),
    );
  });

  const scores = [1, 0, 0, 1];
  const group = ['a', 'a', 'a', 'a'];
  const third = 2 / 3;
  const estimates: [{ estimator: string } & Record<string, unknown>, number[]][] = [
    [{ estimator: 'grpo', group }, [0.866024, -0.866024, -0.866024, 0.866024]],
    [{ estimator: 'grpo', group, norm_adv_by_std_in_grpo: false }, [0.5, -0.5, -0.5, 0.5]],
    [{ estimator: 'grpo', group: [1, 2, 2, 3] }, [1 / (1 + 1e-6), 0, 0, 1 / (1 + 1e-6)]],
    [{ estimator: 'rloo', group }, [third, -third, -third, third]],
    [{ estimator: 'opo', group }, [0.5, -0.5, -0.5, 0.5]],
    // The noise 1 − 2π + Σπ² of the first token is twice that of the others.
    [
      {
        ...{ estimator: 'tir_optimal_token_baseline', group },
        ...{ logprob: scores.map(() => [Math.log(0.5)]), squares: [[0.5], [0.25], [0.25], [0.25]] },
      },
      [0.4, -0.6, -0.6, 0.4],
    ],
    [{ estimator: 'brpo', group: [1, 1, 2, 2] }, [0.866024, -0.866024, -0.866024, 0.866024]],
    [{ estimator: 'arpo' }, [1, 0, 0, 1]],
    [{ estimator: 'remax', baselines: [1, 0.5, 0, -1] }, [0, -0.5, 0, 2]],
    [{ estimator: 'reinforce_plus_plus_baseline', group, whiten: false }, [0.5, -0.5, -0.5, 0.5]],
    [{ estimator: 'reinforce_plus_plus_baseline', group }, [0.866025, -0.866025, -0.866025, 0.866025]],
    [{ estimator: 'reinforce_plus_plus' }, [0.866025, -0.866025, -0.866025, 0.866025]],
  ];
  it('is computed for every estimator of the configuration', () => {
    const tested = ['gae', ...estimates.map(([{ estimator }]) => estimator)];
    const { adv_estimator } = configJsonSchema().properties!.algorithm.properties!;
    const [{ enum: builtIn }] = adv_estimator.anyOf!; // the other option is the path of a plug-in
    expect([...new Set(tested)].toSorted()).toEqual(builtIn!.toSorted());
  });
  it.each(estimates)('is computed for %o', (input, expected) => {
    const column = (rows: number[][]): number[] => rows.map(([x]) => x);
    const found = advantage({ ...input, scores });
    expectClose(column(found.advantages), expected);
    expectClose(column(found.returns), ['reinforce_plus_plus', 'remax'].includes(input.estimator) ? scores : expected);
  });

  it('of a group covers the mask, and per-turn rows of an episode count once', () => {
    const spread = advantage({
      estimator: 'grpo',
      group: [0, 0],
      rewards: [
        [0, 3, 1],
        [0, 0, 0],
      ],
      mask: [
        [1, 0, 1],
        [0, 1, 1],
      ],
      norm_adv_by_std_in_grpo: false,
    });
    expectClose(spread.advantages, [
      [2, 0, 2],
      [0, -2, -2],
    ]);
    const turns = advantage({ estimator: 'rloo', scores: [1, 1, 0], group: [0, 0, 0], episode: [0, 0, 1] });
    expectClose(turns.advantages, [[1], [1], [-1]]);
  });

  it('of a turn is based on its return-to-go', () => {
    const input = {
      estimator: 'grpo',
      use_turn_scores: true,
      group: [0, 0],
      rewards: [
        [1, 0, 2],
        [0, 0, 0],
      ],
      turn_ends: [[0, 2], [2]],
    };
    const { advantages } = advantage({ ...input, high_level_gamma: 1, norm_adv_by_std_in_grpo: false });
    expectClose(advantages, [
      [3 - 5 / 3, 2 - 5 / 3, 2 - 5 / 3],
      [-5 / 3, -5 / 3, -5 / 3],
    ]);
  });

  it('of reinforce_plus_plus continues across gaps, or restarts there as in verl', () => {
    const input = { estimator: 'reinforce_plus_plus', rewards: [[0, 0, 0, 1]], mask: [[1, 1, 0, 1]], gamma: 0.5 };
    expectClose(advantage(input).returns, [[0.25, 0.5, 0, 1]]);
    expectClose(advantage({ ...input, compat: 'ragen' }).returns, [[0, 0, 0, 1]]);
  });
});

describe('filter', () => {
  const scores = [0.5, 0, 0.3, 0.1, 0, 0.4, 0.05, 0.2];
  const call = (options: Record<string, unknown>) =>
    evaluate('filter', {
      scores,
      ...Object.fromEntries(Object.entries(options).map(([key, x]) => [`rollout_filter_${key}`, x])),
    })[0];
  const all = [0, 1, 2, 3, 4, 5, 6, 7];
  const nonZero = [0, 2, 3, 5, 6, 7];
  const softmax = { top_p_prob_mode: 'softmax' };
  const smallest = { type: 'smallest' };
  const without = { include_zero: false };
  it.each([
    [{}, all],
    [{ value: 0.9 }, [0, 2, 5, 7]],
    [{ value: 0.9, ...without }, [0, 2, 5, 7]],
    [{ value: 0.5 }, [0, 5]],
    [{ value: 0.9, ...smallest }, []],
    [{ value: 0.9, ...smallest, ...without }, nonZero],
    [{ value: 0.5, ...smallest, ...without }, [2, 3, 5, 6, 7]],
    [{ value: 0 }, []],
    [{ value: 1, ...without }, nonZero],
    [{ value: 0.9, ...softmax }, all],
    [{ value: 0.9, ...softmax, ...without }, nonZero],
    [{ value: 0.5, ...softmax, ...smallest }, [1, 3, 4, 6]],
    [{ value: 0.25, strategy: 'top_k' }, [0, 5]],
    [{ value: 0.25, strategy: 'top_k', ...smallest }, [1, 4]],
    [{ value: 0.25, strategy: 'top_k', ...smallest, ...without }, [3, 6]],
    [{ value: 0.9, strategy: 'top_k', ...without }, nonZero],
    [{ value: 0.05, strategy: 'top_k' }, [0]],
    [{ value: 3, strategy: 'top_k_abs' }, [0, 2, 5]],
    [{ value: 0, strategy: 'top_k_abs' }, [0]],
    [{ value: 99, strategy: 'top_k_abs', ...without }, nonZero],
    [{ value: 0.5, strategy: 'min_p' }, [0, 2, 5]],
    [{ value: 0.2, strategy: 'min_p' }, [0, 2, 3, 5, 7]],
    [{ value: 0, strategy: 'min_p' }, all],
    [{ value: 0.5, strategy: 'min_p', ...smallest }, [1, 4]],
    [{ value: 0.5, strategy: 'min_p', ...smallest, ...without }, [3, 6]],
    [{ value: 1, strategy: 'min_p' }, [0]],
  ])('with %o keeps %o', (options, kept) => expect(call(options)).toEqual({ kept }));

  it.each([
    [{ strategy: 'top' }, 'rollout_filter_strategy is top: use one of top_p, top_k, top_k_abs, min_p'],
    [{ type: 'middle' }, 'rollout_filter_type is middle: use one of largest, smallest'],
    [{ top_p_prob_mode: 'log' }, 'rollout_filter_top_p_prob_mode is log: use one of linear, softmax'],
  ])('reports a refusal in its place: %o', (options, expectedText) =>
    expect(call(options)).toEqual({ error: expect.stringContaining(expectedText) as string }),
  );

  it('accepts null for a score that is not a number', () => {
    expect(evaluate('filter', { scores: [null, 1, 2], rollout_filter_value: 0.9 })).toEqual([{ kept: [1, 2] }]);
  });
});

describe('losses', () => {
  it('are computed for the policy', () => {
    const [vanilla, cispo, gspo] = evaluate<Record<string, unknown>>(
      'policy-loss',
      ...['vanilla', 'cispo', 'gspo'].map(loss_mode => ({
        logprob: [[Math.log(1.5), Math.log(0.5), Math.log(5), 9]],
        old_logprob: [[0, 0, 0, 9]],
        advantages: [[1, -1, -1, 2]],
        mask: [[1, 1, 1, 0]],
        clip_low: 0.2,
        clip_high: 0.28,
        dual_clip: 3,
        loss_agg_mode: 'token-mean',
        loss_mode,
      })),
    );
    expectClose(vanilla.per_token, [[-1.28, 0.8, 3, -2]]);
    const kl = -Math.log(1.5 * 0.5 * 5) / 3;
    expectClose([vanilla.loss, vanilla.clipfrac, vanilla.ppo_kl], [2.52 / 3, 2 / 3, kl]);
    expectClose(cispo.per_token, [[-1.28 * Math.log(1.5), 0.8 * Math.log(0.5), 1.28 * Math.log(5), -18]]);
    const ratio = Math.exp(-kl);
    expectClose(gspo.per_token, [[-1.28, ratio, ratio, -2.56]]);
  });

  it.each([
    ['token-mean', -1.5],
    ['seq-mean-token-sum', -3],
    ['seq-mean-token-mean', -4 / 3],
    ['seq-mean-token-sum-norm', -2],
  ])('are aggregated by %s', (loss_agg_mode, loss) => {
    const zeros = [
      [0, 0, 0],
      [0, 0, 0],
    ];
    const found = evaluate<{ loss: number }>('policy-loss', {
      logprob: zeros,
      old_logprob: zeros,
      advantages: [
        [1, 0, 0],
        [1, 2, 2],
      ],
      mask: [
        [1, 0, 0],
        [1, 1, 1],
      ],
      loss_agg_mode,
    });
    expectClose(found[0].loss, loss);
  });

  it('are computed for the critic', () => {
    const found = evaluate('value-loss', {
      vpreds: [[2, 9, 1]],
      returns: [[2, 0, 0]],
      old_values: [[1, 0, 1]],
      mask: [[1, 0, 1]],
      clip: 0.5,
    });
    const [{ loss, clipfrac }] = found as { loss: number; clipfrac: number }[];
    expectClose([loss, clipfrac], [0.5 * ((0.25 + 1) / 2), 0.5]);
  });

  it('are computed for KL, by every name', () => {
    const kinds = ['kl', 'k1+', 'abs', 'mse', 'k2', 'low_var_kl', 'low-var-kl', 'k3+'];
    const found = evaluate<{ per_token: number[][] }>(
      'kl',
      ...kinds.map(kind => ({ logprob: [[-1, -1.3]], ref: [[-1.3, -1]], kind })),
    );
    const back = Math.exp(0.3) - 1.3;
    const expected = [
      [0.3, -0.3],
      [0.3, -0.3],
      [0.3, 0.3],
      [0.045, 0.045],
      [0.045, 0.045],
      [0.0408182, back],
      [0.0408182, back],
      [0.0408182, back],
    ];
    expectClose(
      found.map(({ per_token }) => per_token[0]),
      expected,
    );
    expect(refusal('kl', { logprob: [[0]], ref: [[0]], kind: 'full' })).toContain('[0]: "kind" is "full": use kl, k1');
  });
});

describe('normalise', () => {
  const winner = [10.9, ...new Array<number>(15).fill(-1)];
  it.each([
    [
      { scores: [1.1, 0, 0, 1], penalties: [-0.1, 0, 0, 0], group: [0, 0, 0, 0], grouping: 'state', method: 'mean' },
      [0.5, -0.5, -0.5, 0.5],
    ],
    [
      { scores: [1, 0, 0, 1], group: ['g', 'g', 'g', 'g'], grouping: 'state', method: 'mean_std' },
      [0.866024, -0.866024, -0.866024, 0.866024],
    ],
    [
      {
        scores: [1, 0, 0, 0],
        group: [0, 0, 1, 1],
        tag: ['A', 'A', 'A', 'A'],
        grouping: 'inductive',
        method: 'mean_std',
      },
      [1.499997, -0.499999, -0.499999, -0.499999],
    ],
    [{ scores: winner, grouping: 'batch', method: 'asym_clip' }, [3, ...new Array<number>(15).fill(-0.25)]],
    [{ scores: [3, 4], group: [0, 1], grouping: 'state', method: 'mean' }, [3, 4]],
    [{ scores: [3, 4], grouping: 'batch', method: 'identity' }, [3, 4]],
  ])('gives the expected scores for %o', (input, expected) =>
    expectClose(evaluate<{ scores: number[] }>('normalise', input)[0].scores, expected),
  );
});

describe('collapse', () => {
  it('returns RAGEN’s metrics of a matrix', () => {
    const [{ metrics }] = evaluate<{ metrics: Record<string, number> }>('collapse', {
      log_probs_per_token: [
        [-1, -3, -3.2],
        [-2.5, -0.8, -2.9],
        [-1.2, -1.4, -1.1],
      ],
      lengths: [1, 1, 1],
      column: [0, 1, 2],
      signatures: [[1, 2], [1, 3], [4]],
    });
    const expected = {
      mi_estimate: 0.612186,
      mi_seq_estimate: 0.612186,
      mi_upper_bound: 1.098612,
      marginal_std: 0.269199,
      mi_zscore: 2.265685,
      retrieval_accuracy: 1,
    };
    for (const [key, x] of Object.entries(expected)) expectClose(metrics[key], x);
  });
});

describe('cases', () => {
  it('are answered in order, for any number of them', () => {
    expect(evaluate('filter')).toEqual([]);
    fc.assert(
      fc.property(fc.array(fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 6 })), batches => {
        const found = evaluate<Advantages>('advantage', ...batches.map(scores => ({ estimator: 'arpo', scores })));
        expect(found.map(({ advantages }) => advantages.flat())).toEqual(batches);
      }),
    );
  });

  it.each([
    ['no algorithm', 'adv', [], 'algo: adv is not an algorithm: use one of advantage, filter, policy-loss,'],
    ['no case', 'kl', [3], 'cases.json: [0] is 3: give an object'],
    [
      'a missing key',
      'kl',
      [
        { logprob: [[0]], ref: [[0]], kind: 'k1' },
        { logprob: [[0]], kind: 'k1' },
      ],
      'cases.json: [1].ref is missing: give an array',
    ],
    [
      'a text for a number',
      'advantage',
      [{ estimator: 'arpo', scores: [1, 'x'] }],
      'cases.json: [0].scores[1] is "x": give a number',
    ],
    [
      'an unknown estimator',
      'advantage',
      [{ estimator: 'ppo', scores: [1] }],
      'cases.json: [0].estimator is "ppo": use one of gae, grpo,',
    ],
    [
      'a mask of 2',
      'advantage',
      [{ estimator: 'arpo', rewards: [[1]], mask: [[2]] }],
      'cases.json: [0].mask[0][0] is 2: use one of 0, 1',
    ],
    [
      'rows of other lengths',
      'advantage',
      [{ estimator: 'gae', rewards: [[1, 2]], values: [[1]] }],
      'cases.json: [0]: "values[0]" has 1 entries, but "rewards[0]" has 2: give both the same number of entries',
    ],
    [
      'no values',
      'advantage',
      [{ estimator: 'gae', rewards: [[1]] }],
      'cases.json: [0]: the key "values" is missing, which gae needs',
    ],
    [
      'no groups',
      'advantage',
      [{ estimator: 'grpo', scores: [1] }],
      'cases.json: [0]: the key "group" is missing, which grpo needs',
    ],
    [
      'nothing to estimate from',
      'advantage',
      [{ estimator: 'arpo', mask: [[1]] }],
      'cases.json: [0]: the key "rewards" is missing: give one reward per token, or give "scores"',
    ],
    [
      'turn ends outside',
      'advantage',
      [{ estimator: 'gae', bi_level_gae: true, rewards: [[1, 2]], values: [[1, 2]], turn_ends: [[0, 2]] }],
      'cases.json: [0]: turn_ends[0][1] is 2: use increasing token indexes below 2',
    ],
    [
      'a dual clip of 1',
      'policy-loss',
      [{ logprob: [[0]], old_logprob: [[0]], advantages: [[0]], dual_clip: 1 }],
      'cases.json: [0].dual_clip is 1: give a number above 1',
    ],
    [
      'no group to normalise in',
      'normalise',
      [{ scores: [1, 2], grouping: 'state', method: 'mean' }],
      'cases.json: [0]: the key "group" is missing, but "grouping" is state',
    ],
    [
      'a column that is not there',
      'collapse',
      [{ log_probs_per_token: [[-1, -2]], lengths: [1], column: [2], signatures: [0, 1] }],
      'cases.json: [0]: ',
    ],
  ])('with %s are refused in one sentence', (_, name, cases, expectedText) => {
    const message = refusal(name, ...cases);
    expect(message.startsWith(expectedText), message).toBe(true);
    expect(message).not.toContain('\n');
    expect(message).toMatch(/: \S+ .+: \S/);
  });

  it('are refused unless they are an array', () => {
    expect(() => evaluateCases('kl', '{"kind":"k1"}', 'x.json')).toThrow(
      'x.json contains {"kind":"k1"}, not an array of cases: put the case into [ ]',
    );
    expect(() => evaluateCases('kl', '[', 'x.json')).toThrow(/^x\.json is not JSON \(.+\): give an array of cases$/);
  });
});

it('is a command that prints one document', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-algo-'));
  const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    const file = join(folder, 'cases.json');
    writeFileSync(file, JSON.stringify([{ scores: [1, 2], rollout_filter_value: 1 }]));
    const program = new Command();
    addAlgo(program);
    await program.parseAsync(['algo', 'filter', '--input', file, '--json'], { from: 'user' });
    expect(written.mock.calls).toEqual([['[{"kept":[0,1]}]\n']]);
  } finally {
    written.mockRestore();
    rmSync(folder, { recursive: true });
  }
});
