// RAGEN's published collapse metrics on hand-made matrices: a worked example, duplicate prompts, and the running
// average.
import { describe, expect, it } from 'vitest';
import { collapseMetrics } from '../../../../extension/trainer/diagnostics/collapse-metrics';
import type { CrossScores } from '../../../../extension/trainer/diagnostics/collapse-metrics';

const worked: CrossScores = {
  perToken: [
    [-1, -3, -3.2],
    [-2.5, -0.8, -2.9],
    [-1.2, -1.4, -1.1],
  ],
  lengths: [4, 2, 3],
  columns: [0, 1, 2],
  signatures: ['a', 'b', 'c'],
};

describe('collapse metrics', () => {
  it('match the worked example', () => {
    const { metrics, samples } = collapseMetrics(worked);
    expect(Array.from(samples.marginal)).toEqual([-1.878563, -1.632302, -1.225693].map(x => expect.closeTo(x, 6)));
    expect(metrics).toMatchObject({
      mi_estimate: expect.closeTo(0.612186, 6),
      mi_upper_bound: expect.closeTo(1.098612, 6),
      matched_log_prob_mean: expect.closeTo(-2.9 / 3, 6),
      conditional_entropy_est: expect.closeTo(2.9 / 3, 6),
      reasoning_entropy_est: expect.closeTo(2.9 / 3 + 0.612186, 6),
      marginal_std: expect.closeTo(0.269199, 6),
      mi_zscore: expect.closeTo(2.265685, 5),
      marginal_std_ema: expect.closeTo(0.269199, 6),
      mi_zscore_ema: expect.closeTo(2.265685, 5),
      retrieval_accuracy: 1,
      retrieval_chance_level: expect.closeTo(1 / 3, 6),
      retrieval_above_chance: expect.closeTo(2 / 3, 6),
      'retrieval_accuracy@4': 1,
      'retrieval_chance_level@2': expect.closeTo(2 / 3, 6),
      'retrieval_chance_level@8': 1,
      'retrieval_above_chance@8': 0,
    });
  });

  it('sum log-probs over sequences; the paper’s estimate divides the mixture over sequences by the length', () => {
    const { metrics, samples } = collapseMetrics(worked);
    // Sums over tokens: [−4, −12, −12.8], [−5, −1.6, −5.8], [−3.6, −4.2, −3.3]. The logs of the mean probabilities are:
    const marginals = [
      Math.log((Math.exp(-4) + Math.exp(-12) + Math.exp(-12.8)) / 3),
      Math.log((Math.exp(-5) + Math.exp(-1.6) + Math.exp(-5.8)) / 3),
      Math.log((Math.exp(-3.6) + Math.exp(-4.2) + Math.exp(-3.3)) / 3),
    ];
    expect(Array.from(samples.marginalSeq)).toEqual(marginals.map(x => expect.closeTo(x, 9)));
    const mi = (-4 - 1.6 - 3.3 - marginals[0] - marginals[1] - marginals[2]) / 3;
    const paper = (-2.9 - marginals[0] / 4 - marginals[1] / 2 - marginals[2] / 3) / 3;
    const centre = (marginals[0] + marginals[1] + marginals[2]) / 3;
    const std = Math.sqrt(marginals.reduce((sum, x) => sum + (x - centre) ** 2, 0) / 3);
    expect(metrics.mi_seq_estimate).toBeCloseTo(mi, 9);
    expect(metrics.conditional_entropy_seq_est).toBeCloseTo(8.9 / 3, 9);
    expect(metrics.reasoning_entropy_seq_est).toBeCloseTo(8.9 / 3 + mi, 9);
    expect(metrics.marginal_std_seq).toBeCloseTo(std, 9);
    expect(metrics.mi_zscore_seq).toBeCloseTo(mi / (std + 1e-3), 9);
    expect(metrics.paper_mi_estimate).toBeCloseTo(paper, 9);
    expect(metrics.paper_mi_estimate).toBeLessThan(metrics.mi_estimate);
    expect(metrics.paper_reasoning_entropy_est).toBeCloseTo(metrics.conditional_entropy_est + paper, 9);
  });

  it('count any copy of a prompt as the prompt', () => {
    const { metrics } = collapseMetrics({
      perToken: [
        [-2, -1, -3],
        [-1, -2, -3],
        [-1, -2, -3],
      ],
      lengths: [1, 1, 1],
      columns: [0, 1, 2],
      signatures: ['A', 'A', 'B'],
    });
    expect(metrics.retrieval_accuracy).toBeCloseTo(2 / 3, 9);
    expect(metrics.retrieval_chance_level).toBeCloseTo(0.5556, 4);
    expect(metrics['retrieval_accuracy@2']).toBeCloseTo(2 / 3, 9);
    expect(metrics['retrieval_accuracy@4']).toBe(1);
  });

  it('report no information if every prompt scores equally; the first column counts as retrieved', () => {
    const { metrics } = collapseMetrics({
      perToken: Array.from({ length: 4 }, () => [-0.7, -0.7, -0.7, -0.7]),
      lengths: [3, 5, 7, 9],
      columns: [0, 1, 2, 3],
      signatures: [0, 1, 2, 3],
    });
    expect(metrics).toMatchObject({
      mi_estimate: 0,
      mi_seq_estimate: 0,
      paper_mi_estimate: expect.closeTo(0, 12),
      mi_zscore: 0,
      retrieval_accuracy: 0.25,
      retrieval_above_chance: 0,
    });
  });

  it('average the deviation of the marginal over diagnoses', () => {
    const withStd = (std: number): CrossScores => ({
      perToken: [
        [-1 - std, -1 - std],
        [-1 + std, -1 + std],
      ],
      lengths: [2, 2],
      columns: [0, 1],
      signatures: ['a', 'b'],
    });
    const first = collapseMetrics(withStd(0.5));
    expect(first.spread).toEqual({ token: expect.closeTo(0.5, 12), sequence: expect.closeTo(1, 12) });
    const second = collapseMetrics(withStd(0.3), first.spread);
    expect(second.metrics.marginal_std_ema).toBeCloseTo(0.48, 12);
    expect(second.metrics.marginal_std_ema_seq).toBeCloseTo(0.96, 12);
    expect(second.metrics.marginal_std).toBeCloseTo(0.3, 12);
  });

  it.each([
    [
      { perToken: [] },
      'collapse: log_probs_per_token has 0 rows, and "signatures" has 3 entries: give at least one of each',
    ],
    [
      { perToken: [[-1, -2]] },
      'collapse: row 0 of log_probs_per_token has 2 entries, but "signatures" has 3: give one log-prob per signature',
    ],
    [
      { lengths: [1] },
      'collapse: log_probs_per_token has 3 rows, but "lengths" has 1 entries and "column" has 3: give one entry per row',
    ],
    [{ columns: [0, 1, 3] }, 'collapse: entry 2 of "column" is 3: use an index from 0 to 2'],
  ])('refuse inconsistent inputs: %j', (change, sentence) => {
    expect(() => collapseMetrics({ ...worked, ...change })).toThrow(sentence);
  });
});
