import { expect, test } from 'vitest';
import {
  coveredSteps,
  fileCoverage,
  formatMark,
  uncountedCoverage,
} from '../../../../extension/vscode/environments/environment-coverage';
import type { CoverageLine } from '../../../../extension/run-data/environment-snapshot';

const text = 'const a = 1;\nif (won) {\n  return { reward: 1 };\n}\nlog();\nconst Reward = won ? 1 : 0;\n';
const line = (step: number, lines: CoverageLine['files'][string], map = 'm'): CoverageLine => {
  return { step, map, files: { 'lake.ts': lines } };
};

test('counts of the steps add up; unreached lines are reported, unreached rewards as warnings', () => {
  const counted = [
    line(1, [
      [1, 1, 1],
      [2, 8, 8],
      [3, 0, 0],
      [5, 0, 0],
      [6, 8, 0],
    ]),
    line(2, [
      [1, 0, 0],
      [2, 1200, 0],
      [3, 0, 0],
      [5, 0, 0],
      [6, 2, 0],
    ]),
  ];
  const { marks, steps } = fileCoverage(counted, 'lake.ts', text)!;
  expect(steps).toEqual([1, 2]);
  expect(marks.map(mark => [mark.line, mark.kind, formatMark(mark)])).toEqual([
    [1, 'reached', '1×'],
    [2, 'reached', '1,208×'],
    [3, 'unrewarded', 'never executed: this reward was never given'],
    [5, 'never', 'never executed'],
    [6, 'unrewarded', '10×, but part of this reward was never given'],
  ]);
  expect(formatMark({ line: 1, hits: 3, kind: 'partly' })).toBe('3×, but part of the line never ran');
});

test('lines of another source map are different lines; a step repeated by a resume counts once; the last steps count', () => {
  const counted = [line(1, [[1, 100, 100]], 'old'), line(2, [[1, 1, 1]]), line(3, [[1, 2, 2]]), line(3, [[1, 4, 4]])];
  expect(fileCoverage(counted, 'lake.ts', text)!.marks).toEqual([{ line: 1, hits: 5, kind: 'reached' }]);
  const many = Array.from({ length: coveredSteps + 10 }, (_, i) => line(i + 1, [[1, 1, 1]]));
  expect(fileCoverage(many, 'lake.ts', text)).toMatchObject({ marks: [{ hits: coveredSteps }], steps: [11, 60] });
  expect(fileCoverage(many, 'other.ts', text)).toBeUndefined();
  expect(fileCoverage([], 'lake.ts', text)).toBeUndefined();
});

test('a source may have any name', () => {
  expect(fileCoverage([line(1, [[1, 1, 1]])], '__proto__', text)).toBeUndefined();
});

test('before a step of a version is counted, its blocks are marked as not yet counted', () => {
  const { marks, steps } = uncountedCoverage(text);
  expect(steps).toBeNull();
  expect(marks.map(mark => [mark.line, formatMark(mark)])).toEqual([[2, 'not yet counted']]);
  expect(uncountedCoverage('a();\n').marks).toMatchObject([{ line: 1, kind: 'uncounted' }]);
});
