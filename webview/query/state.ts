// The immutable state of the Query page; only the reducer changes it.
import type { QueryContext } from '../../extension/protocol/query-page';
import type { QueryResult } from '../../extension/protocol/query-result';
import type { Theme } from '../shared/theme';
import { examples } from './examples';

/** Names of the columns of the chart; a column that the result lacks is ignored, and empty is “none”. */
export interface ChartChoice {
  readonly x: string;
  readonly y: string;
  /** Column whose values divide the rows into lines. */
  readonly series: string;
}

/** Settings that are restored when the page is shown again. */
export interface QuerySettings {
  readonly sql: string;
  readonly chart: ChartChoice;
}

export interface QueryState {
  /** Null until the host has answered. */
  readonly context: QueryContext | null;
  readonly running: boolean;
  readonly result: QueryResult | null;
  /** Why the newest query has no result, or why the page could not be loaded. */
  readonly error: string | null;
  readonly cancelled: boolean;
  readonly settings: QuerySettings;
  readonly theme: Theme;
}

export const firstSettings: QuerySettings = { sql: examples[0].sql, chart: { x: '', y: '', series: '' } };

export const initialState = (settings: QuerySettings, theme: Theme): QueryState => ({
  context: null,
  running: false,
  result: null,
  error: null,
  cancelled: false,
  settings,
  theme,
});

/** Indices of the columns in which every value that is not null is a number, with at least one number. */
export const numericColumns = ({ columns, rows }: QueryResult): number[] =>
  columns.flatMap((_, i) => {
    const values = rows.map(row => row[i]).filter(value => value !== null);
    return values.length > 0 && values.every(value => typeof value === 'number') ? [i] : [];
  });

/**
 * Returns the chart's columns for a result: the chosen ones where they exist, else the first column as x, the first other
 * numeric column as y and, with a numeric x, the first text column as series. Null if no column can be y.
 */
export function chartColumns(
  result: QueryResult,
  choice: ChartChoice,
): { x: number; y: number; series: number | null } | null {
  const indexOf = (name: string): number => result.columns.findIndex(column => column.name === name);
  const numeric = numericColumns(result);
  const x = Math.max(0, indexOf(choice.x));
  const chosenY = indexOf(choice.y);
  const y = numeric.includes(chosenY) ? chosenY : (numeric.find(i => i !== x) ?? numeric[0]);
  if (y === undefined || result.columns.length < 2) return null;
  const isText = (i: number): boolean => i !== x && i !== y && !numeric.includes(i);
  const chosenSeries = indexOf(choice.series);
  const texts = result.columns.map((_, i) => i).filter(isText);
  const series = chosenSeries >= 0 && chosenSeries !== x ? chosenSeries : choice.series === '' ? texts[0] : undefined;
  return { x, y, series: numeric.includes(x) && series !== undefined ? series : null };
}
