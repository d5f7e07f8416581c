// Redundant metrics: found in any slicing of the columns, and the same whether found at once or line by line.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MetricNumbers } from '../../../extension/run-data/metric-segments';
import { afterLine, redundantColumns } from '../../../extension/run-data/redundant-columns';

const value = fc.constantFrom(0, 1, 2, Number.NaN);
const rows = fc.array(fc.tuple(value, value, value, value), { minLength: 3, maxLength: 30 });
const keys = ['a', 'b', 'c', 'd'];
const column = (lines: number[][], at: number): Float64Array => Float64Array.from(lines, line => line[at]);
const of = (lines: number[][], cut = lines.length) =>
  redundantColumns(
    keys.map((key, at) => [key, [column(lines.slice(0, cut), at), column(lines.slice(cut), at)]] as const),
  );
const same = (a: Float64Array, b: Float64Array): boolean => a.every((x, i) => Object.is(x, b[i]));

it('are exactly the constant and the equal columns with at least three values', () => {
  fc.assert(
    fc.property(rows, fc.nat(30), (lines, cut) => {
      const { constant, equal } = of(lines, Math.min(cut, lines.length));
      const finite = keys.map((_, at) => column(lines, at).filter(x => !Number.isNaN(x)));
      const enough = (at: number): boolean => finite[at].length >= 3;
      const isConstant = (at: number): boolean => enough(at) && finite[at].every(x => x === finite[at][0]);
      expect(Object.keys(constant)).toEqual(keys.filter((_, at) => isConstant(at)));
      const pairs = keys.flatMap((a, i) =>
        keys.slice(i + 1).flatMap((b, j) => {
          const other = i + 1 + j;
          const both = enough(i) && enough(other) && !isConstant(i) && !isConstant(other);
          return both && same(column(lines, i), column(lines, other)) ? [`${a}${b}`] : [];
        }),
      );
      const found = equal.flatMap(set => set.flatMap((a, i) => set.slice(i + 1).map(b => `${a}${b}`)));
      expect(found.sort()).toEqual(pairs.sort());
    }),
  );
});

it('cease to be redundant with the line that differs', () => {
  fc.assert(
    fc.property(rows, rows, (before, added) => {
      let state = of(before);
      for (const [step, line] of added.entries()) {
        const metrics = { step } as MetricNumbers;
        keys.forEach((key, at) => !Number.isNaN(line[at]) && (metrics[key] = line[at]));
        state = afterLine(state, metrics);
      }
      const all = [...before, ...added];
      for (const [key, known] of Object.entries(state.constant))
        expect(column(all, keys.indexOf(key)).every(x => Number.isNaN(x) || x === known)).toBe(true);
      for (const [first, ...others] of state.equal)
        for (const other of others)
          expect(same(column(all, keys.indexOf(first)), column(all, keys.indexOf(other)))).toBe(true);
    }),
  );
});

it('keeps its object while nothing changes, and follows columns that begin late', () => {
  const late = redundantColumns([
    ['x', [undefined, Float64Array.of(1, 2, 3)]],
    ['y', [Float64Array.of(Number.NaN), Float64Array.of(1, 2, 3)]],
    ['two values', [Float64Array.of(1), Float64Array.of(1)]],
  ]);
  expect(late).toEqual({ constant: {}, equal: [['x', 'y']] });
  expect(afterLine(late, { step: 9, x: 4, y: 4 })).toBe(late);
  expect(afterLine(late, { step: 9, x: 4 }).equal).toEqual([]);
});
