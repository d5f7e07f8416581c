// Properties of the collapse metrics over random log-prob matrices.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { collapseMetrics } from '../../../../extension/trainer/diagnostics/collapse-metrics';
import type { CrossScores } from '../../../../extension/trainer/diagnostics/collapse-metrics';

const logprob = fc.integer({ min: -8000, max: 0 }).map(x => x / 1000);

/** Rows are samples; prompts may have copies. */
const scores: fc.Arbitrary<CrossScores> = fc.integer({ min: 1, max: 9 }).chain(width =>
  fc
    .array(
      fc.record({
        row: fc.array(logprob, { minLength: width, maxLength: width }),
        length: fc.integer({ min: 1, max: 60 }),
        column: fc.integer({ min: 0, max: width - 1 }),
      }),
      { minLength: 1, maxLength: 12 },
    )
    .chain(samples =>
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: width, maxLength: width }).map(signatures => ({
        perToken: samples.map(({ row }) => row),
        lengths: samples.map(({ length }) => length),
        columns: samples.map(({ column }) => column),
        signatures,
      })),
    ),
);

const close = (found: Record<string, number>, expected: Record<string, number>): void => {
  expect(Object.keys(found)).toEqual(Object.keys(expected));
  for (const [key, value] of Object.entries(expected)) expect(found[key], key).toBeCloseTo(value, 7);
};

describe('collapse metrics', () => {
  it('bound mutual information by ln N, and sum it with H(Z|X) to the entropy of the reasoning', () => {
    fc.assert(
      fc.property(scores, input => {
        const { metrics } = collapseMetrics(input);
        const bound = Math.log(input.signatures.length) + 1e-9;
        for (const key of ['mi_estimate', 'mi_seq_estimate', 'paper_mi_estimate'])
          expect(metrics[key], key).toBeLessThanOrEqual(bound);
        expect(metrics.reasoning_entropy_est).toBeCloseTo(metrics.conditional_entropy_est + metrics.mi_estimate, 7);
        expect(metrics.paper_reasoning_entropy_est).toBeCloseTo(
          metrics.conditional_entropy_est + metrics.paper_mi_estimate,
          7,
        );
      }),
    );
  });

  it('report no dependence when the prompt makes no difference', () => {
    fc.assert(
      fc.property(scores, input => {
        const perToken = input.perToken.map(row => Array.from(row, () => row[0]));
        const { metrics } = collapseMetrics({ ...input, perToken });
        expect(metrics.mi_estimate).toBeCloseTo(0, 12);
        expect(metrics.mi_seq_estimate).toBeCloseTo(0, 9);
        expect(metrics.paper_mi_estimate).toBeCloseTo(0, 12);
      }),
    );
  });

  it('do not depend on the order of samples nor, except for ties, on the order of prompts', () => {
    const shuffled = (count: number): fc.Arbitrary<number[]> =>
      fc.shuffledSubarray(
        Array.from({ length: count }, (_, i) => i),
        { minLength: count },
      );
    const distinct = scores.map(input => ({
      ...input,
      perToken: input.perToken.map(row => Array.from(row, (x, j) => x - j * 1e-5)),
    }));
    fc.assert(
      fc.property(
        distinct.chain(input =>
          fc.tuple(fc.constant(input), shuffled(input.perToken.length), shuffled(input.signatures.length)),
        ),
        ([input, rows, columns]) => {
          const moved: CrossScores = {
            perToken: rows.map(i => columns.map(j => input.perToken[i][j])),
            lengths: rows.map(i => input.lengths[i]),
            columns: rows.map(i => columns.indexOf(input.columns[i])),
            signatures: columns.map(j => input.signatures[j]),
          };
          close(collapseMetrics(moved).metrics, collapseMetrics(input).metrics);
        },
      ),
    );
  });

  it('agree between token and sequence level when all samples have length 1', () => {
    fc.assert(
      fc.property(scores, input => {
        const { metrics } = collapseMetrics({ ...input, lengths: input.perToken.map(() => 1) });
        expect(metrics.mi_seq_estimate).toBeCloseTo(metrics.mi_estimate, 12);
        expect(metrics.paper_mi_estimate).toBeCloseTo(metrics.mi_estimate, 12);
        expect(metrics.marginal_std_seq).toBeCloseTo(metrics.marginal_std, 12);
      }),
    );
  });

  it('have retrieval accuracy that rises with depth, up to 1', () => {
    fc.assert(
      fc.property(scores, input => {
        const { metrics } = collapseMetrics(input);
        const found = ['', '@2', '@4', '@8'].map(depth => metrics[`retrieval_accuracy${depth}`]);
        expect([...found].sort((a, b) => a - b)).toEqual(found);
        if (input.signatures.length <= 8) expect(found[3]).toBe(1);
      }),
    );
  });
});
