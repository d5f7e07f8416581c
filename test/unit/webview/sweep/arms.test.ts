// The results of a sweep: which values count, how intervals narrow, and paired differences.
import { describe, expect, it } from 'vitest';
import type { SweepCell, SweepSnapshot } from '../../../../extension/protocol/sweep-page';
import type { RunState } from '../../../../extension/run-data/run-status-file';
import { armsOf, differenceOf, domainOf, seedsOf } from '../../../../webview/sweep/arms';
import { runAt } from '../../../e2e/preview/data';

const cell = (point: number, seed: number, last: number | null, state: RunState | null, ended = seed): SweepCell => {
  const run = runAt(4, 4, state ? { state } : {});
  const status = { ...run.status, updated: new Date(Date.UTC(2026, 0, 1, ended)).toISOString() };
  return { point, seed, attempts: 1, run: state && { ...run, status }, last, best: last === null ? null : last + 1 };
};
const snapshotOf = (labels: readonly string[], cells: SweepCell[]): SweepSnapshot => ({
  ...{ id: 's', isRunning: true, jobs: 1, rungs: [], cells, metric: 'm', keys: ['m'], meanings: {} },
  points: labels.map(label => ({ label, stopped: null })),
});
const values = (point: number, ...list: number[]): SweepCell[] =>
  list.map((value, i) => cell(point, i + 1, value, 'finished'));

describe('the arms of a sweep', () => {
  const snapshot = snapshotOf(
    ['a', 'b'],
    [...values(0, 1, 2, 6), cell(0, 4, 5, 'running'), cell(0, 5, null, null), cell(1, 2, 9, 'finished')],
  );

  it('count finished runs, or all runs with a value', () => {
    const [a] = armsOf(snapshot, 'last', false);
    expect([...a.values]).toEqual([
      [1, 1],
      [2, 2],
      [3, 6],
    ]);
    expect(a.estimate).toMatchObject({ mean: 3, n: 3 });
    expect(armsOf(snapshot, 'last', true)[0].estimate).toMatchObject({ mean: 3.5, n: 4 });
    expect(armsOf(snapshot, 'best', false)[0].estimate).toMatchObject({ mean: 4 });
  });

  it('have a cell for each seed of the sweep', () => {
    expect(seedsOf(snapshot)).toEqual([1, 2, 3, 4, 5]);
    expect(armsOf(snapshot, 'last', false)[1].cells.map(each => each?.last)).toEqual([
      ...[undefined, 9, undefined, undefined, undefined],
    ]);
  });

  it('have an interval from three seeds on, and its history in the order in which the runs ended', () => {
    const ended = [cell(0, 1, 10, 'finished', 9), ...[0, 1, 2].map(i => cell(0, i + 2, i, 'finished', i))];
    const [arm, other] = armsOf(snapshotOf(['a', 'b'], [...ended, ...values(1, 1, 2)]), 'last', false);
    expect(arm.history.map(({ n, mean }) => [n, mean])).toEqual([
      [3, 1],
      [4, 3.25],
    ]);
    expect(arm.history.at(-1)).toEqual(arm.estimate);
    expect(other.history).toEqual([]);
    expect(other.estimate!.interval).toBeNull();
  });
});

describe('the difference of two arms', () => {
  const arms = armsOf(
    snapshotOf(['a', 'b', 'c'], [...values(0, 1, 2, 3), ...values(1, 2, 4, 6), ...values(2, 0, 9)]),
    'last',
    false,
  );
  const names = { base: '', other: '' };

  it('is that of the best arm from the first one, by seed', () => {
    const found = differenceOf(arms, names, false)!;
    expect([found.base.label, found.other.label]).toEqual(['a', 'c']);
    expect(found.pairs).toEqual([
      { seed: 1, base: 1, other: 0 },
      { seed: 2, base: 2, other: 9 },
    ]);
    expect(found.paired).toMatchObject({ n: 2, mean: 3, student: null });
    expect(differenceOf(arms, names, true)!.other.label).toBe('b');
  });

  it('follows the user’s choice, and never compares an arm with itself', () => {
    const found = differenceOf(arms, { base: 'a', other: 'b' }, false)!;
    expect(found.paired).toMatchObject({ n: 3, mean: 2 });
    expect(found.paired!.effectSize).toBeCloseTo(2, 12);
    expect(found.paired!.student!.low).toBeLessThan(2);
    expect(differenceOf(arms, { base: 'gone', other: 'a' }, false)!.base.label).toBe('b');
    for (const base of ['a', 'b', 'c'])
      expect(differenceOf(arms, { base, other: base }, false)!.other.label).not.toBe(base);
  });

  it('needs two arms', () => expect(differenceOf(arms.slice(0, 1), names, false)).toBeNull());
});

it('the scale covers all intervals; shares end at 0 and 1', () => {
  const arms = armsOf(snapshotOf(['a'], values(0, 0.1, 0.9, 0.5)), 'last', false);
  expect(domainOf(arms, true)).toEqual({ low: 0, high: 1 });
  expect(domainOf(arms, false)!.high).toBeGreaterThan(1);
  expect(domainOf([], true)).toBeNull();
});
