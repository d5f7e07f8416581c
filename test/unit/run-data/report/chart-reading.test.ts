// The values that a report shows under the pointer.
import { expect, it } from 'vitest';
import { neighbour, valuesAt, type ChartReading } from '../../../../extension/run-data/report/chart-reading';

const line = (label: string, ...points: [number, number][]): ChartReading['lines'][number] => ({
  ...{ label, colour: '#000000', points },
});
const reading = { lines: [line('train', [1, 0.1], [2, 0.2], [4, 0.4]), line('val', [0, 0.5], [4, 0.9])] };

it('belong to the closest point, and to all lines that have a point there', () => {
  expect(valuesAt(reading, 1.4)?.x).toBe(1);
  expect(valuesAt(reading, 3.9)).toEqual({
    x: 4,
    values: [
      { label: 'train', colour: '#000000', y: 0.4 },
      { label: 'val', colour: '#000000', y: 0.9 },
    ],
  });
  expect(valuesAt({ lines: [line('empty')] }, 1)).toBeNull();
});

it('move by keys to the next point of any line, and stop at the ends', () => {
  expect([0, 1, 2, 4].map(x => neighbour(reading, x, 1))).toEqual([1, 2, 4, null]);
  expect([0, 1, 2, 4].map(x => neighbour(reading, x, -1))).toEqual([null, 0, 1, 2]);
});
