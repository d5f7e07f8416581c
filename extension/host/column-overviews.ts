// Overviews of a long run's columns, as its charts draw them first: each made once, at the latest when it is asked for, and then carried on
// with the rows that came since. No `vscode` here.
import { MovingAverage, overviewOf, smoothOn, type CurvePoints } from '../protocol/curves';
import type { ColumnPart } from '../protocol/dashboard-page';
import type { ColumnTable } from './metric-columns';

/** A column becomes the lowest and highest of so many parts: one for each pixel of a chart that is not enlarged, and more. */
const parts = 1024;

/** With more new rows than this an overview is made anew. */
const mostNewRows = 1024;

interface Overview {
  /** Rows of the column when it was made anew, and those that it reaches to now. */
  madeOf: number;
  rows: number;
  points: CurvePoints;
  smoothed: { points: CurvePoints; average: MovingAverage } | null;
}

export class ColumnOverviews {
  private readonly made = new Map<string, Overview>();

  /** @param smoothing of the smoothed forms, 0 for none */
  constructor(
    readonly table: ColumnTable,
    readonly smoothing: number,
  ) {}

  /** A key's overview up to the table's newest row. */
  part(key: string): ColumnPart {
    const column = this.table.column(key);
    const before = this.made.get(key);
    const overview =
      before && column.length - before.madeOf <= mostNewRows
        ? carriedOn(before, column)
        : overviewed(column, this.smoothing);
    this.made.set(key, overview);
    return { kind: 'overview', points: overview.points, smoothed: overview.smoothed?.points ?? null };
  }
}

function overviewed(column: Float64Array, smoothing: number): Overview {
  const average = smoothing > 0 ? new MovingAverage(smoothing) : null;
  return {
    madeOf: column.length,
    rows: column.length,
    points: overviewOf(column, parts),
    smoothed: average && { points: overviewOf(smoothOn(column, average, 0), parts), average },
  };
}

function carriedOn({ madeOf, rows, points, smoothed }: Overview, column: Float64Array): Overview {
  const fresh = column.subarray(rows);
  return {
    madeOf,
    rows: column.length,
    points: appended(points, rows, fresh),
    smoothed: smoothed && {
      points: appended(smoothed.points, rows, smoothOn(fresh, smoothed.average, rows)),
      average: smoothed.average,
    },
  };
}

/** Points and behind them those of `fresh`, whose first is of row `from`. */
function appended({ rows, values }: CurvePoints, from: number, fresh: Float64Array): CurvePoints {
  const places = [...fresh.keys()].filter(place => !Number.isNaN(fresh[place]));
  return {
    rows: Int32Array.from([...rows, ...places.map(place => from + place)]),
    values: Float64Array.from([...values, ...places.map(place => fresh[place])]),
  };
}
