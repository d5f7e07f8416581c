// A run's metrics in the page: its rows, and the curves of metrics that have been displayed. In a long run, a curve is
// first loaded as an overview and then completely. Each request is sent once. New rows are appended. When the run is
// resumed, the host sends a new `epoch` number and all data is reloaded. A key may also be that of an expression
// (derived-curves.ts).
import { MovingAverage, smoothOn } from '../../extension/common/smoothing';
import { dashboardColumns, type ColumnPart, type DashboardSnapshot } from '../../extension/protocol/dashboard-page';
import type { MetricNumbers } from '../../extension/run-data/metric-segments';
import {
  afterLine,
  noneRedundant,
  redundantColumns,
  type RedundantColumns,
} from '../../extension/run-data/redundant-columns';
import type { Host } from '../shared/host';
import type { XAxis } from '../../extension/run-data/charts/format-x';
import { Curve, lowerBound } from '../../extension/run-data/charts/curve';
import { DerivedCurves, isDerived, pushValue, type HeldCurve } from './derived-curves';

interface Held extends HeldCurve {
  complete: boolean;
}

/**
 * The part of the page's state that describes a SeriesStore. Whenever the store changes, a new object replaces the
 * previous one.
 */
export interface SeriesSummary {
  readonly rows: number;
  readonly keys: readonly string[];
  /** The same object until a metric becomes or ceases to be redundant. */
  readonly redundant: RedundantColumns;
}

/**
 * Returns the x axes for which a run logs the necessary metrics. `episodesAStep` is the configured number of training
 * episodes per step; null if unknown.
 */
export function axesOf(keys: readonly string[], episodesAStep: number | null): XAxis[] {
  const axes: XAxis[] = ['step'];
  if (keys.includes(timeKey)) axes.push('time');
  if (keys.includes(episodesKey) || episodesAStep !== null) axes.push('episodes');
  return axes;
}

/**
 * Maximum number of recent metric lines that the page stores. New lines may arrive while a requested column is on its
 * way. These lines are appended to the column when it has arrived. If there are more such lines than this maximum, the
 * column is requested again.
 */
const recentLines = 256;

/** Numbers of rows at which the columns of a run that is watched from its first step are compared. */
const redundancyRows: readonly number[] = [5, 10, 20, 50, 100];

const timeKey = 'wall_s';
const episodesKey = 'train/num_episodes';

export class SeriesStore {
  private stepCurve = new Curve();
  private held = new Map<string, Held>();
  private known = new Set<string>();
  private keyList: readonly string[] = [];
  private asked = new Set<string>();
  /** Keys whose complete column is requested `idleMs` after the last call of `want`. */
  private readonly toFollow = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private epoch = Number.NaN;
  /** The latest lines. They are appended to columns that were being requested when the lines arrived. */
  private recent: MetricNumbers[] = [];
  private redundant = noneRedundant;
  private episodesAStep: number | null = null;
  private episodesAt: Curve | null = null;
  private readonly derived = new DerivedCurves(this);
  /** Smoothing factor. It is sent with requests, because the extension host smooths overviews. */
  smoothing = 0;

  constructor(
    private readonly host: Pick<Host, 'request'>,
    /** Called with the keys whose curves have arrived. */
    private readonly came: (keys: readonly string[]) => void,
    /** Complete columns are requested this many milliseconds after the last call of `want`. */
    private readonly idleMs = 500,
  ) {}

  get length(): number {
    return this.stepCurve.length;
  }

  /** Steps of the rows, increasing, as a view of the internal array; invalid after the next change. */
  get steps(): Float64Array {
    return this.stepCurve.values;
  }

  /** Metric keys in order of first appearance. The array is replaced only when a key is added. */
  get keys(): readonly string[] {
    return this.keyList;
  }

  get summary(): SeriesSummary {
    return { rows: this.length, keys: this.keys, redundant: this.redundant };
  }

  has(key: string): boolean {
    return isDerived(key) ? this.derived.has(key) : this.known.has(key);
  }

  /** Returns the metrics from which the curve of a key is computed: the key itself, or the metrics of an expression. */
  metricsOf(key: string): string[] {
    return isDerived(key) ? this.derived.metricsOf(key) : [key];
  }

  /** Returns the curve of a key; undefined until an overview or the complete column is loaded. */
  curve(key: string): Curve | undefined {
    return this.heldOf(key)?.curve;
  }

  /** Returns the curve of a metric; undefined until its complete column is loaded. */
  complete(key: string): Curve | undefined {
    const held = this.held.get(key);
    return held?.complete ? held.curve : undefined;
  }

  /** Returns the smoothed curve of a key; the raw curve if the factor is 0. */
  smoothed(key: string, factor: number): Curve | undefined {
    const held = this.heldOf(key);
    if (!held || factor <= 0) return held?.curve;
    if (held.smoothed?.factor === factor) return held.smoothed.curve;
    const average = new MovingAverage(factor);
    const curve = Curve.of(smoothOn(held.curve.values, average, 0));
    held.smoothed = { factor, curve, average };
    return curve;
  }

  /** Replaces all data with a run's snapshot and discards all curves. */
  load({ epoch, steps, keys, episodes, redundant }: DashboardSnapshot): void {
    this.epoch = epoch;
    this.stepCurve = new Curve();
    for (const [first, count] of steps) for (let i = 0; i < count; i++) this.stepCurve.push(first + i);
    this.known = new Set(keys);
    this.keyList = [...this.known];
    this.held = new Map();
    this.derived.clear();
    this.asked = new Set();
    this.recent = [];
    this.redundant = redundant;
    this.episodesAStep = episodes.train;
    this.episodesAt = null;
  }

  /** Appends one row per line; steps must increase. */
  append(lines: readonly MetricNumbers[]): void {
    const knownBefore = this.known.size;
    for (const line of lines) {
      const row = this.length;
      this.stepCurve.push(line.step);
      this.recent.push(line);
      this.redundant = afterLine(this.redundant, line);
      if (this.recent.length > recentLines) this.recent.shift();
      for (const key in line) {
        if (key === 'step' || this.known.has(key)) continue;
        this.known.add(key); // the key first appears in this line, so its column is complete
        this.held.set(key, { curve: Curve.of(new Float64Array(row).fill(Number.NaN)), complete: true });
      }
      for (const [key, held] of this.held) {
        if (held.curve.length > row) continue; // the loaded column already contains this row
        pushValue(held, line[key] ?? Number.NaN);
      }
      if (redundancyRows.includes(this.length)) this.compareHeld();
    }
    if (this.known.size > knownBefore) this.keyList = [...this.known];
  }

  /** Requests the curves of the keys. In a long run, an overview is requested first and the complete columns later. */
  want(keys: readonly string[]): void {
    this.ask(
      keys.filter(key => !this.held.has(key)),
      true,
    );
    this.ask(
      keys.filter(isDerived).flatMap(key => this.derived.metricsOf(key)),
      false,
    );
    const shortened = keys.filter(key => this.held.get(key)?.complete === false);
    if (shortened.length === 0) return;
    for (const key of shortened) this.toFollow.add(key);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.ask([...this.toFollow], false);
      this.toFollow.clear();
    }, this.idleMs);
  }

  /** Whether the complete columns of the keys are loaded; keys that the run does not have are ignored. */
  isComplete(keys: readonly string[]): boolean {
    return keys.every(key => !this.known.has(key) || this.held.get(key)?.complete);
  }

  /** The x axes for which the run logs the necessary metrics. */
  get axes(): XAxis[] {
    return axesOf(this.keys, this.episodesAStep);
  }

  /**
   * Returns the x positions of the rows, increasing, one per row. While the column of `axis` is loading, the steps are
   * returned instead.
   */
  positions(axis: XAxis): { axis: XAxis; xs: Float64Array } {
    const bySteps = { axis: 'step' as const, xs: this.steps };
    if (axis === 'step' || !this.axes.includes(axis)) return bySteps;
    const key = axis === 'time' ? timeKey : episodesKey;
    this.ask([key], false);
    if (!this.isComplete([key])) return bySteps;
    if (axis === 'time') return { axis, xs: this.curve(key)!.values };
    return { axis, xs: this.episodesPlayed(this.curve(key)) };
  }

  /** Returns the first row whose step is at or after `step`; the number of rows if there is none. */
  rowFrom(step: number): number {
    return lowerBound(this.steps, step);
  }

  /**
   * Returns the cumulative number of training episodes at each row. A row adds its logged number of episodes. If a row
   * has no logged number, it adds the configured number for each step since the previous row.
   */
  private episodesPlayed(logged: Curve | undefined): Float64Array {
    const sums = (this.episodesAt ??= new Curve());
    const counts = logged?.values;
    const { steps } = this;
    for (let row = sums.length; row < this.length; row++) {
      const before = row > 0 ? sums.values[row - 1] : 0;
      const stepsSince = steps[row] - (row > 0 ? steps[row - 1] : 0);
      const count = counts && Number.isFinite(counts[row]) ? counts[row] : stepsSince * (this.episodesAStep ?? 0);
      sums.push(before + count);
    }
    return sums.values;
  }

  /**
   * Finds redundant metrics among the complete columns of the page. This matters to a run that is watched from its
   * first step, because the host compares columns only for a snapshot.
   */
  private compareHeld(): void {
    const complete = [...this.held].filter(([, { complete: isComplete }]) => isComplete);
    if (complete.length < this.known.size) return;
    this.redundant = redundantColumns(complete.map(([key, { curve }]) => [key, [curve.values]]));
  }

  private heldOf(key: string): HeldCurve | undefined {
    return isDerived(key) ? this.derived.held(key) : this.held.get(key);
  }

  private ask(keys: readonly string[], overview: boolean): void {
    const fresh = keys.filter(key => this.known.has(key) && !this.asked.has(`${key} ${overview}`));
    if (fresh.length === 0) return;
    for (const key of fresh) this.asked.add(`${key} ${overview}`);
    if (!overview && fresh.length > 1) {
      // Complete columns are large. Separate requests prevent one long response from delaying other messages.
      for (const key of fresh) this.request([key], overview);
    } else this.request(fresh, overview);
  }

  private request(fresh: readonly string[], overview: boolean): void {
    const { epoch, smoothing } = this;
    const forget = () => {
      for (const key of fresh) this.asked.delete(`${key} ${overview}`);
    };
    this.host.request(dashboardColumns, { epoch, keys: [...fresh], overview, smoothing }).then(answer => {
      if (answer.epoch !== this.epoch || epoch !== this.epoch) return; // the answer belongs to an earlier snapshot
      if (this.length - answer.rows > this.recent.length) return forget(); // too many lines are missing in the answer
      for (const [key, part] of Object.entries(answer.columns)) this.take(key, part, answer.rows, smoothing);
      this.came(fresh);
    }, forget);
  }

  private take(key: string, part: ColumnPart, rows: number, factor: number): void {
    const length = Math.min(rows, this.length);
    const held = this.held.get(key);
    if (part.kind === 'overview' && held?.complete) return;
    const fresh: Held =
      part.kind === 'whole'
        ? { curve: Curve.of(part.values.subarray(0, length)), complete: true }
        : { curve: Curve.overview(part.points, length), complete: false };
    if (part.kind === 'overview' && part.smoothed) {
      const average = new MovingAverage(factor);
      fresh.smoothed = { factor, curve: Curve.overview(part.smoothed, length), average };
    }
    for (const line of this.recent.slice(this.recent.length - (this.length - length))) {
      pushValue(fresh, line[key] ?? Number.NaN);
    }
    this.held.set(key, fresh);
  }
}
