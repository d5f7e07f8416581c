// What a chart draws, computed from the columns only if rows, columns or look have changed since the last time. A
// growing run adds less than a pixel with most rows: then the last drawing is kept.
import { areSame } from '../shared/latest';
import { relativePosition, type Range } from '../charts/axis';
import { keysOf, type ChartSpec } from '../charts/catalogue';
import type { ChartContext } from './context';
import { plotData, type PlotData } from '../charts/plot-data';
import { pictureSize } from './svg-plot';

/** What a drawing depends on. */
export interface DrawingInputs {
  readonly spec: ChartSpec;
  readonly context: ChartContext;
  readonly log: boolean;
  readonly large: boolean;
}

export class ChartDrawing {
  /** Null before the first drawing, and while there are no values. */
  data: PlotData | null = null;
  /** Whether there are values: they may still be loading. */
  filling: 'unknown' | 'drawn' | 'waiting' | 'empty' = 'unknown';
  private range: Range | null = null;
  private isLog = false;
  private rows: readonly unknown[] = [];
  private shape: readonly unknown[] = [];
  /** Axes, width and last points of the last drawing (`endOf`), to detect a visible change. */
  private end = '';

  /** Whether the inputs are those of the last `update`. */
  isOf(inputs: DrawingInputs): boolean {
    return areSame(this.rows, rowsOf(inputs)) && areSame(this.shape, shapeOf(inputs));
  }

  update(inputs: DrawingInputs, width: number): void {
    const { spec, context, log, large } = inputs;
    const { store } = context;
    const shape = shapeOf(inputs);
    const [marks, previous] = [context.marks(width), this.rangeFor(log)];
    const data = plotData(spec, context, { width, log, large, marks, previous });
    const isWaiting = !data && keysOf(spec).some(key => store.has(key) && !store.curve(key));
    const end = data ? endOf(data, width) : '';
    this.filling = data ? 'drawn' : isWaiting ? 'waiting' : 'empty';
    // While columns are loaded again, the last drawing is kept out of sight.
    if (!isWaiting && (end !== this.end || !this.data || !areSame(shape, this.shape))) this.data = data;
    if (data || log !== this.isLog) this.range = data?.y ?? null;
    Object.assign(this, { rows: rowsOf(inputs), shape, end, isLog: log });
  }

  /** The drawing of an exported picture; null if there is no data. */
  picture({ spec, context, log }: DrawingInputs): PlotData | null {
    const { width } = pictureSize;
    const marks = context.marks(width);
    return plotData(spec, context, { log, large: true, width, marks, previous: this.rangeFor(log) });
  }

  /** Forgets the drawing but its range, so that the next one is made anew. */
  forget(): void {
    Object.assign(this, { data: null, rows: [], shape: [], end: '' });
  }

  /** The last range, which a drawing of the same kind of scale keeps if its values fit. */
  private rangeFor(log: boolean): Range | null {
    return log === this.isLog ? this.range : null;
  }
}

const rowsOf = ({ context: { x, xs } }: DrawingInputs): unknown[] => [xs.length, x.min, x.max];

/** Everything but the rows. */
const shapeOf = ({ spec, context: { look, store }, log, large }: DrawingInputs): unknown[] => [
  ...[look, spec, log, large],
  ...keysOf(spec).map(key => store.curve(key)),
];

/** The end of a drawing in half pixels: while it is unchanged, an additional row makes no visible difference. */
function endOf({ x, y, log, lines }: PlotData, width: number): string {
  const half = (position: number, pixels: number): number => Math.round(position * pixels * 2);
  const ends = lines.map(({ points }) =>
    points
      .slice(-4)
      .map(point => [half(relativePosition(point.x, x), width), half(relativePosition(point.y, y, log), 120)]),
  );
  return JSON.stringify([x, y, width, ends]);
}
