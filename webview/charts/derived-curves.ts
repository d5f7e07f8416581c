// Curves of expressions, computed from the complete columns of their metrics. Such a curve has the key `=` followed by
// the expression, so that charts treat it as a metric. A row has a value if all metrics of the expression have one.
import type { MovingAverage } from '../../extension/common/smoothing';
import { Curve } from '../../extension/run-data/charts/curve';
import { isProblem, parseExpression, stepName, type Expression } from './expression';

/** Returns the key of an expression's curve. */
export const derivedKey = (expression: string): string => `=${expression}`;

/** Whether a key is that of an expression; metric keys do not begin with `=`. */
export const isDerived = (key: string): boolean => key.startsWith('=');

/** A curve with its smoothed form, which grow together. */
export interface HeldCurve {
  curve: Curve;
  smoothed?: { factor: number; curve: Curve; average: MovingAverage };
}

/** Appends a row to a curve and to its smoothed form. */
export function pushValue({ curve, smoothed }: HeldCurve, value: number): void {
  const row = curve.length;
  curve.push(value);
  smoothed?.curve.push(smoothed.average.next(row, value));
}

interface Derived extends HeldCurve {
  /** The curves from which the rows were computed. */
  sources: readonly Curve[];
}

/** The metrics from which expressions are computed. */
export interface Sources {
  /** Number of rows. */
  readonly length: number;
  /** Steps of the rows. */
  readonly steps: Float64Array;
  has(key: string): boolean;
  /** Returns the curve of a metric; undefined until its complete column is loaded. */
  complete(key: string): Curve | undefined;
}

export class DerivedCurves {
  private readonly expressions = new Map<string, Expression | null>();
  private derived = new Map<string, Derived>();

  constructor(private readonly sources: Sources) {}

  /** Returns the metrics that the curve of a key needs; empty if the expression is invalid. */
  metricsOf(key: string): string[] {
    return (this.expression(key)?.names ?? []).filter(name => name !== stepName);
  }

  /** Whether the expression is valid and the run has all its metrics. */
  has(key: string): boolean {
    return this.expression(key) !== null && this.metricsOf(key).every(name => this.sources.has(name));
  }

  /** Returns the curve of a key with all rows; undefined until the columns of its metrics are loaded. */
  held(key: string): HeldCurve | undefined {
    const expression = this.expression(key);
    if (!expression) return undefined;
    const curves: Curve[] = [];
    for (const name of expression.names) {
      const curve = name === stepName ? undefined : this.sources.complete(name);
      if (!curve && name !== stepName) return undefined;
      if (curve) curves.push(curve);
    }
    let held = this.derived.get(key);
    if (!held || held.sources.length !== curves.length || held.sources.some((curve, i) => curve !== curves[i]))
      this.derived.set(key, (held = { curve: new Curve(), sources: curves }));
    const { steps, length } = this.sources;
    const columns = expression.names.map(name => (name === stepName ? steps : this.sources.complete(name)!.values));
    const values = new Float64Array(columns.length);
    for (let row = held.curve.length; row < length; row++) {
      columns.forEach((column, i) => (values[i] = column[row] ?? Number.NaN));
      const value = expression.evaluate(values);
      pushValue(held, Number.isFinite(value) ? value : Number.NaN);
    }
    return held;
  }

  /** Discards all curves; called when the rows are replaced. */
  clear(): void {
    this.derived = new Map();
  }

  private expression(key: string): Expression | null {
    let known = this.expressions.get(key);
    if (known === undefined) {
      const parsed = parseExpression(key.slice(1));
      this.expressions.set(key, (known = isProblem(parsed) ? null : parsed));
    }
    return known;
  }
}
