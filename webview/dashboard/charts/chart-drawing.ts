// The drawing of a chart. It is recomputed only if rows, columns or settings have changed. Even then, the last drawing
// is reused if a new row would change it by less than half a pixel. This is usual in a long run.
import { areSame } from '../../shared/memoize-latest';
import { relativePosition, type Limits, type Range } from '../../../extension/run-data/charts/axis';
import { keysOf, type ChartSpec } from '../../../extension/run-data/charts/catalogue';
import type { ChartContext } from './chart-context';
import { plotData, type PlotData } from '../../../extension/run-data/charts/plot-data';
import { pictureSize } from '../../../extension/run-data/charts/svg-plot';

/** Inputs of a drawing. */
export interface DrawingInputs {
  readonly spec: ChartSpec;
  readonly context: ChartContext;
  readonly log: boolean;
  /** Whether the y axis leaves out outliers. */
  readonly clipped: boolean;
  /** Ends of the y axis that the user has set; null without. */
  readonly limits: Limits | null;
  /** Whether the chart has room for more ticks. */
  readonly roomy: boolean;
}

export class ChartDrawing {
  /** The last drawing; null before the first drawing and while no line has a value. */
  data: PlotData | null = null;
  /** `waiting`: values are still loading; `empty`: no value was logged; `unknown`: before the first update. */
  filling: 'unknown' | 'drawn' | 'waiting' | 'empty' = 'unknown';
  private range: Range | null = null;
  /** Kind of the y scale of the last drawing; a range is only kept for the same kind. */
  private scale = '';
  private rows: readonly unknown[] = [];
  private shape: readonly unknown[] = [];
  /**
   * Axes, width and last points of the last drawing, as a text (`endOf`). A visible change of the drawing changes this
   * text.
   */
  private end = '';

  /** Whether the inputs equal the inputs of the last `update`. */
  isOf(inputs: DrawingInputs): boolean {
    return areSame(this.rows, rowsOf(inputs)) && areSame(this.shape, shapeOf(inputs));
  }

  update(inputs: DrawingInputs, width: number): void {
    const { spec, context, log, clipped, limits, roomy } = inputs;
    const { store } = context;
    const shape = shapeOf(inputs);
    const [marks, previous] = [context.marks(width), this.rangeFor(inputs)];
    const data = plotData(spec, context, { width, log, clipped, limits, large: roomy, marks, previous });
    const isWaiting = !data && keysOf(spec).some(key => store.has(key) && !store.curve(key));
    const end = data ? endOf(data, width) : '';
    this.filling = data ? 'drawn' : isWaiting ? 'waiting' : 'empty';
    // While columns are reloaded, `data` keeps the last drawing, which is hidden.
    if (!isWaiting && (end !== this.end || !this.data || !areSame(shape, this.shape))) this.data = data;
    const scale = scaleOf(inputs);
    if (data || scale !== this.scale) this.range = data?.y ?? null;
    Object.assign(this, { rows: rowsOf(inputs), shape, end, scale });
  }

  /** Returns the drawing for an exported picture; null if no line has a value. */
  picture(inputs: DrawingInputs): PlotData | null {
    const { spec, context, log, clipped, limits } = inputs;
    const { width } = pictureSize;
    const [marks, previous] = [context.marks(width), this.rangeFor(inputs)];
    return plotData(spec, context, { log, clipped, limits, large: true, width, marks, previous });
  }

  /** Discards the drawing but not its y range. The next `update` recomputes the drawing. */
  forget(): void {
    Object.assign(this, { data: null, rows: [], shape: [], end: '' });
  }

  /** Returns the y range of the last drawing; null after a change of the kind of scale. */
  private rangeFor(inputs: DrawingInputs): Range | null {
    return scaleOf(inputs) === this.scale ? this.range : null;
  }
}

const scaleOf = ({ log, clipped, limits }: DrawingInputs): string => JSON.stringify({ log, clipped, limits });

const rowsOf = ({ context: { x, xs } }: DrawingInputs): unknown[] => [xs.length, x.min, x.max];

/** Returns all inputs except the rows. If one of them has changed, the chart must be drawn again. */
const shapeOf = ({ spec, context: { look, store }, log, clipped, limits, roomy }: DrawingInputs): unknown[] => [
  ...[look, spec, log, clipped, limits, roomy],
  ...keysOf(spec).map(key => store.curve(key)),
];

/**
 * Returns the axes and the last points of a drawing, rounded to half pixels, as a text for comparison. If an additional
 * row does not change this text, the row makes no visible difference.
 */
function endOf({ x, y, log, lines }: PlotData, width: number): string {
  const half = (position: number, pixels: number): number => Math.round(position * pixels * 2);
  const ends = lines.map(({ points }) =>
    points
      .slice(-4)
      .map(point => [half(relativePosition(point.x, x), width), half(relativePosition(point.y, y, log), 120)]),
  );
  return JSON.stringify([x, y, width, ends]);
}
