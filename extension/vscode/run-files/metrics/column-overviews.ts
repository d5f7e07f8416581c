// Overviews of metric columns. An overview contains the minimum and the maximum of each block of consecutive rows. The
// charts of a long run draw overviews until the complete columns have been loaded. An overview is computed once and
// then extended with new rows. Must not import `vscode`.
import { MovingAverage, smoothOn } from '../../../common/smoothing';
import { overviewOf, type CurvePoints } from '../../../common/curves';
import type { ColumnPart } from '../../../protocol/dashboard-page';
import type { ColumnTable } from './column-table';

/**
 * Number of blocks into which a column is divided. More blocks are not needed, because charts of normal size are fewer
 * than 1024 pixels wide.
 */
const parts = 1024;

/** Number of appended rows above which an overview is recomputed. */
const mostNewRows = 1024;

interface Overview {
  /**
   * Number of rows that the column had when the overview was computed. `rows` also counts the rows that were appended
   * to the overview later.
   */
  madeOf: number;
  rows: number;
  points: CurvePoints;
  smoothed: { points: CurvePoints; average: MovingAverage } | null;
}

export class ColumnOverviews {
  private readonly made = new Map<string, Overview>();

  /** @param smoothing smoothing factor, 0 for none */
  constructor(
    readonly table: ColumnTable,
    readonly smoothing: number,
  ) {}

  /** Returns the overview of a key's column, up to the table's newest row. */
  part(key: string): ColumnPart {
    const column = this.table.column(key);
    const before = this.made.get(key);
    const overview =
      before && column.length - before.madeOf <= mostNewRows
        ? extended(before, column)
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

function extended({ madeOf, rows, points, smoothed }: Overview, column: Float64Array): Overview {
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

/** Appends the points of `fresh`, whose first value is at row `from`. */
function appended({ rows, values }: CurvePoints, from: number, fresh: Float64Array): CurvePoints {
  const indices = [...fresh.keys()].filter(index => !Number.isNaN(fresh[index]));
  return {
    rows: Int32Array.from([...rows, ...indices.map(index => from + index)]),
    values: Float64Array.from([...values, ...indices.map(index => fresh[index])]),
  };
}
