// A run's numbers as the page has them: which rows there are, and of the metrics that were on screen their curves, first perhaps as an
// overview, then whole. What is asked of the host here is asked once. Rows grow at the end; a resume brings another epoch and a new load.
import { MovingAverage, smoothOn } from '../../extension/protocol/curves';
import { dashboardColumns, type ColumnPart, type DashboardSnapshot } from '../../extension/protocol/dashboard-page';
import type { MetricNumbers } from '../../extension/protocol/metric-segments';
import type { Host } from '../shared/host';
import { Curve, lowerBound } from './curve';

/** Where rows stand: by number of step, by seconds of run time, or by training episodes played. */
export type XAxis = 'step' | 'time' | 'episodes';

interface Held {
  curve: Curve;
  whole: boolean;
  smoothed?: { factor: number; curve: Curve; average: MovingAverage };
}

/** Columns that are asked for lag behind the lines by less. */
const recentLines = 256;

const timeKey = 'wall_s';
const episodesKey = 'train/num_episodes';

export class SeriesStore {
  private stepCurve = new Curve();
  private held = new Map<string, Held>();
  private known = new Set<string>();
  private asked = new Set<string>();
  /** Keys whose whole column is to follow their overview, when the overviews on their way have come. */
  private readonly toFollow = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private epoch = Number.NaN;
  /** The newest lines, for columns that were on their way when these came. */
  private recent: MetricNumbers[] = [];
  private episodesAStep: number | null = null;
  private episodesAt: Curve | null = null;
  /** Smoothing that overviews are asked with. */
  smoothing = 0;

  constructor(
    private readonly host: Pick<Host, 'request'>,
    /** Curves have come. */
    private readonly came: (keys: ReadonlySet<string>) => void,
    /** Milliseconds of quiet before whole columns are asked for behind their overviews. */
    private readonly patience = 500,
  ) {}

  get length(): number {
    return this.stepCurve.length;
  }

  /** Steps of the rows, growing. A view: valid until the next change. */
  get steps(): Float64Array {
    return this.stepCurve.values;
  }

  /** Metric keys in the order in which they first came. */
  get keys(): string[] {
    return [...this.known];
  }

  has(key: string): boolean {
    return this.known.has(key);
  }

  /** The curve of a key, undefined while it is not here. */
  curve(key: string): Curve | undefined {
    return this.held.get(key)?.curve;
  }

  /** The smoothed curve of a key; the curve itself where the factor is 0. */
  smoothed(key: string, factor: number): Curve | undefined {
    const held = this.held.get(key);
    if (!held || factor <= 0) return held?.curve;
    if (held.smoothed?.factor === factor) return held.smoothed.curve;
    const average = new MovingAverage(factor);
    const curve = Curve.of(smoothOn(held.curve.values, average, 0));
    held.smoothed = { factor, curve, average };
    return curve;
  }

  /** Takes a run's snapshot; all curves are asked for anew. */
  load({ epoch, steps, keys, episodes }: DashboardSnapshot): void {
    this.epoch = epoch;
    this.stepCurve = new Curve();
    for (const [first, count] of steps) for (let i = 0; i < count; i++) this.stepCurve.push(first + i);
    this.known = new Set(keys);
    this.held = new Map();
    this.asked = new Set();
    this.recent = [];
    this.episodesAStep = episodes.train;
    this.episodesAt = null;
  }

  /** Appends lines in their order. */
  append(lines: readonly MetricNumbers[]): void {
    for (const line of lines) {
      const row = this.length;
      this.stepCurve.push(line.step);
      this.recent.push(line);
      if (this.recent.length > recentLines) this.recent.shift();
      for (const key in line) {
        if (key === 'step' || this.known.has(key)) continue;
        this.known.add(key); // new with this line: whole from the start
        this.held.set(key, { curve: Curve.of(new Float64Array(row).fill(Number.NaN)), whole: true });
      }
      for (const [key, held] of this.held) {
        if (held.curve.length > row) continue; // came with this row already
        const value = line[key] ?? Number.NaN;
        held.curve.push(value);
        held.smoothed?.curve.push(held.smoothed.average.next(row, value));
      }
    }
  }

  /** Sees to it that curves of these keys come: an overview where the run is long, and then all of it. */
  want(keys: readonly string[]): void {
    this.ask(
      keys.filter(key => !this.held.has(key)),
      true,
    );
    const shortened = keys.filter(key => this.held.get(key)?.whole === false);
    if (shortened.length === 0) return;
    for (const key of shortened) this.toFollow.add(key);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.ask([...this.toFollow], false);
      this.toFollow.clear();
    }, this.patience);
  }

  /** Whether all rows of these keys are here. */
  isWhole(keys: readonly string[]): boolean {
    return keys.every(key => !this.known.has(key) || this.held.get(key)?.whole);
  }

  /** Which x axes the run's numbers allow. */
  get axes(): XAxis[] {
    const axes: XAxis[] = ['step'];
    if (this.known.has(timeKey)) axes.push('time');
    if (this.known.has(episodesKey) || this.episodesAStep !== null) axes.push('episodes');
    return axes;
  }

  /** Where rows stand on an axis; steps while what it needs is on its way. Growing, as long as the rows. */
  places(axis: XAxis): { axis: XAxis; xs: Float64Array } {
    const bySteps = { axis: 'step' as const, xs: this.steps };
    if (axis === 'step' || !this.axes.includes(axis)) return bySteps;
    const key = axis === 'time' ? timeKey : episodesKey;
    this.ask([key], false);
    if (!this.isWhole([key])) return bySteps;
    if (axis === 'time') return { axis, xs: this.curve(key)!.values };
    return { axis, xs: this.episodesPlayed(this.curve(key)) };
  }

  /** The first row whose step is at or after `step`; the number of rows when there is none. */
  rowFrom(step: number): number {
    return lowerBound(this.steps, step);
  }

  /** Training episodes up to each row, as logged, else as configured. */
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

  private ask(keys: readonly string[], overview: boolean): void {
    const fresh = keys.filter(key => this.known.has(key) && !this.asked.has(`${key} ${overview}`));
    if (fresh.length === 0) return;
    for (const key of fresh) this.asked.add(`${key} ${overview}`);
    if (!overview && fresh.length > 1) {
      for (const key of fresh) this.request([key], overview); // large: one at a time leaves room for others between them
    } else this.request(fresh, overview);
  }

  private request(fresh: readonly string[], overview: boolean): void {
    const { epoch, smoothing } = this;
    const forget = () => {
      for (const key of fresh) this.asked.delete(`${key} ${overview}`);
    };
    this.host.request(dashboardColumns, { epoch, keys: [...fresh], overview, smoothing }).then(answer => {
      if (answer.epoch !== this.epoch || epoch !== this.epoch) return; // a new load is under way
      if (this.length - answer.rows > this.recent.length) return forget(); // far behind: asked again when it is wanted next
      for (const [key, part] of Object.entries(answer.columns)) this.take(key, part, answer.rows, smoothing);
      this.came(new Set(fresh));
    }, forget);
  }

  private take(key: string, part: ColumnPart, rows: number, factor: number): void {
    const length = Math.min(rows, this.length);
    const held = this.held.get(key);
    if (part.kind === 'overview' && held?.whole) return;
    const fresh: Held =
      part.kind === 'whole'
        ? { curve: Curve.of(part.values.subarray(0, length)), whole: true }
        : { curve: Curve.overview(part.points, length), whole: false };
    if (part.kind === 'overview' && part.smoothed) {
      const average = new MovingAverage(factor);
      fresh.smoothed = { factor, curve: Curve.overview(part.smoothed, length), average };
    }
    for (const line of this.recent.slice(this.recent.length - (this.length - length))) {
      const value = line[key] ?? Number.NaN;
      fresh.smoothed?.curve.push(fresh.smoothed.average.next(fresh.curve.length, value));
      fresh.curve.push(value);
    }
    this.held.set(key, fresh);
  }
}
