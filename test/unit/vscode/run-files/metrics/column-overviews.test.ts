// Column overviews: an incrementally updated overview agrees with its column, in whatever order data arrives.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ColumnOverviews } from '../../../../../extension/vscode/run-files/metrics/column-overviews';
import { ColumnTable } from '../../../../../extension/vscode/run-files/metrics/column-table';
import { smooth } from '../../../../../extension/common/smoothing';
import { type CurvePoints } from '../../../../../extension/common/curves';

const seeded = (row: number) => (row % 7 === 3 ? Number.NaN : Math.sin(row / 50) + ((row * 7919) % 13) / 100);

/** Adds rows to the table up to `to`; some rows lack the key. */
function grow(table: ColumnTable, to: number): void {
  for (let row = table.rows; row < to; row++) {
    const value = seeded(row);
    table.addLine(Number.isNaN(value) ? { step: row } : { step: row, key: value });
  }
}

function overview(overviews: ColumnOverviews): { points: CurvePoints; smoothed: CurvePoints | null } {
  const part = overviews.part('key');
  if (part.kind !== 'overview') throw new Error('a whole column');
  return part;
}

it('an updated overview contains values of the column at their rows, its extremes and its newest rows', () => {
  const growths = fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 1, maxLength: 4 });
  const check = (first: number, more: number[], smoothing: number) => {
    const table = new ColumnTable();
    const overviews = new ColumnOverviews(table, smoothing);
    grow(table, first);
    overviews.part('key');
    for (const count of more) {
      grow(table, table.rows + count);
      const column = table.column('key');
      const { points, smoothed } = overview(overviews);
      const finite = [...column.keys()].filter(row => !Number.isNaN(column[row]));
      expect([...points.rows]).toEqual([...points.rows].sort((a, b) => a - b));
      expect([...points.values]).toEqual([...points.rows].map(row => column[row]));
      expect(Math.max(...points.values)).toBe(Math.max(...finite.map(row => column[row])));
      expect(Math.min(...points.values)).toBe(Math.min(...finite.map(row => column[row])));
      const newest = finite.slice(-Math.min(50, finite.length));
      expect([...points.rows.slice(-newest.length)]).toEqual(newest);
      const exact = smooth(column, smoothing);
      expect(smoothed && [...smoothed.values]).toEqual(
        smoothing > 0 ? [...smoothed!.rows].map(row => exact[row]) : null,
      );
    }
  };
  fc.assert(fc.property(fc.integer({ min: 1, max: 5000 }), growths, fc.constantFrom(0, 0.6, 0.9), check), {
    numRuns: 60,
  });
});

it('an unchanged column is not recomputed, and a large update rebuilds it at its usual size', () => {
  const table = new ColumnTable();
  grow(table, 6000);
  const overviews = new ColumnOverviews(table, 0);
  const first = overview(overviews).points;
  expect([...overview(overviews).points.rows]).toEqual([...first.rows]);
  grow(table, 30_000);
  const { rows } = overview(overviews).points;
  expect(rows.length).toBeLessThanOrEqual(2 * 1024 + 64);
  expect(rows.at(-1)).toBe(29_999);
});
