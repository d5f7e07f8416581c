// The runs of a sweep as data: for each shown run, its configuration values and its result, and the axes of the parallel
// coordinates. A run's result is the last value of the metric. Pure functions.
import { rankCorrelation } from '../../../extension/common/rank-correlation';
import { formatValue } from '../../shared/format';
import type { ColouredGroup, Compared, ComparedMetric } from '../compared-metrics';
import type { RunCurve } from '../../../extension/run-data/charts/group-curves';
import { keyColumn, keyImportances, type KeyColumn, type KeyImportances } from './key-importance';
import { keyAxis, numberAxis, type ParallelAxis } from './parallel-axes';

export interface SweepRun {
  readonly id: string;
  readonly name: string;
  readonly folder: string;
  readonly result: number;
  /** The value of each configuration key, as text. */
  readonly texts: ReadonlyMap<string, string>;
}

export interface Sweep {
  readonly runs: readonly SweepRun[];
  /** Null if there are too few runs, or if all results are equal. */
  readonly importances: KeyImportances | null;
  readonly axes: readonly ParallelAxis[];
  /** Number of keys without an axis. */
  readonly hiddenKeys: number;
}

/** Least number of configurations that make a sweep. */
const leastGroups = 3;
/** Maximum number of keys with an axis, so that the labels stay apart. */
const mostKeys = 8;

/** Whether the compared runs are a sweep: at least three configurations that differ in some key. */
export const isSweep = ({ snapshot: { keys }, groups }: Compared): boolean =>
  keys.length > 0 && groups.length >= leastGroups;

/** Returns the sweep of the shown groups. Runs without a value of the metric are left out. */
export function sweepOf(
  { snapshot }: Compared,
  groups: readonly ColouredGroup[],
  metric: ComparedMetric,
  curves: readonly RunCurve[],
): Sweep {
  const runs = groups.flatMap(({ members, values }) =>
    members.flatMap((i): SweepRun[] => {
      const result = curves[i].values.findLast(Number.isFinite);
      if (result === undefined) return [];
      const { id, name, folder } = snapshot.runs[i].run;
      return [{ id, name, folder, result, texts: new Map(snapshot.keys.map((key, k) => [key, values[k]])) }];
    }),
  );
  const results = runs.map(({ result }) => result);
  // A key that has one value in all shown runs, because others are hidden, explains nothing.
  const columns = snapshot.keys
    .map(key =>
      keyColumn(
        key,
        runs.map(({ texts }) => texts.get(key)!),
      ),
    )
    .filter(({ values }) => new Set(values).size > 1);
  const importances = columns.length > 0 ? keyImportances(columns, results) : null;
  const shown = shownColumns(columns, results, importances);
  const names = shownTitles(shown.map(({ key }) => key));
  const format = (value: number): string => formatValue(value, metric.unit);
  return {
    runs,
    importances,
    axes: [
      ...shown.map((column, i) => keyAxis(column, names[i])),
      numberAxis(metric.key, metric.title, results, format),
    ],
    hiddenKeys: columns.length - shown.length,
  };
}

/** Returns the most important columns in configuration order; without importances, the most correlated columns. */
function shownColumns(
  columns: readonly KeyColumn[],
  results: readonly number[],
  importances: KeyImportances | null,
): KeyColumn[] {
  const strengths = columns.map(({ values }, i) =>
    importances ? importances.keys[i].importance : Math.abs(rankCorrelation(values, results)),
  );
  const chosen = [...columns.keys()].sort((a, b) => strengths[b] - strengths[a] || a - b).slice(0, mostKeys);
  return columns.filter((_, i) => chosen.includes(i));
}

/** Returns the last part of each key, or the last two parts if the last parts are equal. */
export function shownTitles(keys: readonly string[]): string[] {
  const last = (key: string, parts: number): string => key.split('.').slice(-parts).join('.');
  return keys.map(key => last(key, keys.filter(other => last(other, 1) === last(key, 1)).length > 1 ? 2 : 1));
}
