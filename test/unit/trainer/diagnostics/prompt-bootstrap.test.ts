// Confidence intervals of the collapse metrics by resampling prompts.
import { expect, it } from 'vitest';
import { collapseMetrics } from '../../../../extension/trainer/diagnostics/collapse-metrics';
import { promptIntervals } from '../../../../extension/trainer/diagnostics/prompt-bootstrap';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';

/**
 * Metrics and intervals of `each` samples under each of `prompts` prompts. A sample scores higher under its own prompt,
 * by a gain that varies between prompts; all scores have noise.
 */
function measured(prompts: number, each: number, seed: number) {
  const stream = new RandomStream(seed);
  const gains = Array.from({ length: prompts }, () => 1 + 0.5 * stream.normal());
  const columns = Array.from({ length: prompts * each }, (_, i) => i % prompts);
  const perToken = columns.map(column =>
    Array.from({ length: prompts }, (_, j) => -2 + (j === column ? gains[j] : 0) + 0.1 * stream.normal()),
  );
  const scores = { perToken, lengths: columns.map(() => 5), columns, signatures: gains.map((_, j) => j) };
  const { metrics, samples } = collapseMetrics(scores);
  return { metrics, intervals: promptIntervals(samples, columns, new RandomStream(9)) };
}

it('intervals contain the estimate, and narrow with the number of prompts, not of samples', () => {
  const width = (found: Record<string, number>): number => found.mi_estimate_ci_high - found.mi_estimate_ci_low;
  const few = measured(8, 4, 1);
  for (const { metrics, intervals } of [few, measured(16, 4, 1)])
    for (const name of ['mi_estimate', 'mi_seq_estimate', 'paper_mi_estimate', 'conditional_entropy_est']) {
      expect(intervals[`${name}_ci_low`], name).toBeLessThan(metrics[name]);
      expect(intervals[`${name}_ci_high`], name).toBeGreaterThan(metrics[name]);
    }
  expect(width(measured(128, 4, 1).intervals)).toBeLessThan(0.5 * width(few.intervals));
  expect(width(measured(8, 64, 1).intervals)).toBeGreaterThan(0.6 * width(few.intervals));
});

it('the standard deviation of the draws equals the standard error of a mean over prompts', () => {
  // One sample per prompt. `marginal` is zero, so matched − marginal equals the known values.
  const n = 50;
  const stream = new RandomStream(2);
  const values = Float64Array.from({ length: n }, () => stream.normal());
  const zeros = new Float64Array(n);
  const samples = {
    matched: values,
    marginal: zeros,
    matchedSeq: values,
    marginalSeq: zeros,
    marginalPaper: zeros,
    retrieved: zeros,
  };
  const found = promptIntervals(samples, Array.from(values.keys()), new RandomStream(3));
  const mean = values.reduce((sum, x) => sum + x, 0) / n;
  const error = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / n / n);
  expect(found.mi_estimate_ci_low).toBeCloseTo(mean - 1.96 * error, 1);
  expect(found.mi_estimate_ci_high).toBeCloseTo(mean + 1.96 * error, 1);
  expect([found.retrieval_accuracy_ci_low, found.retrieval_accuracy_ci_high]).toEqual([0, 0]);
});

it('equal random streams yield equal intervals', () => {
  expect(measured(8, 4, 1)).toEqual(measured(8, 4, 1));
});
