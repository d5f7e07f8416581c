// The metrics of an attached run: rows of several sources, merged by step, and written to the run's metrics.jsonl in the
// order of their steps. Only lines that have changed and the lines after them are written again. Values that are derived
// from rollouts fill the names that the trainer never logs. Invariants: the file contains one line per written row, and
// `lines` has the byte offset of each; a name has the trainer's values at all steps, or derived values at all steps.
import { readLines, type LineLog } from '../trainer/store/line-log';
import { isRecord, jsonOrNothing } from '../common/json';
import type { MetricRow } from './adapter';

/** Maximum number of values (8 bytes each), of rows, of names, and of characters of a name. */
const defaultLimits = { cells: 2 ** 25, rows: 1_000_000, names: 16_384, nameLength: 1000 };
/** Number of lines per write. */
const batchLines = 512;

/** Values by step that were derived from other data of the step, which was written at `time` (milliseconds since 1970). */
export type DerivedRows = ReadonlyMap<number, { time: number; values: Readonly<Record<string, number>> }>;

interface Row {
  /** Milliseconds since 1970. */
  time: number;
  /** Whether the trainer stored the time. */
  isTimed: boolean;
  /** Run time in seconds, as an earlier process wrote it. */
  wall?: number;
  /** Values by the number of their name; NaN for a missing value. */
  cells: Float64Array;
}

export class MetricTable {
  private readonly rows = new Map<number, Row>();
  private readonly names: string[] = [];
  private readonly numbers = new Map<string, number>();
  private cells = 0;
  private sorted: number[] | undefined;
  private lines: { step: number; from: number }[] = [];
  private derived: DerivedRows = new Map();
  /** What the limits leave out, in sentences. */
  private readonly cut = new Set<string>();
  /** The smallest step that differs from the file. */
  private dirty = Infinity;

  /** `stepSeconds`: see ForeignRun. */
  constructor(
    private readonly stepSeconds: readonly string[] = [],
    private readonly most = defaultLimits,
  ) {}

  /** Reads the rows that an earlier process wrote to `file`. `derived` has the names of its derived metrics. */
  load(file: string, derived: ReadonlySet<string>): void {
    const loaded = new Map<number, { time: number; values: Record<string, number> }>();
    let from = 0;
    for (const { text, next } of readLines(file)) {
      const line = jsonOrNothing(text);
      if (isRecord(line) && Number.isSafeInteger(line['step']) && typeof line['time'] === 'string') {
        const { step, time, wall_s: wall, ...rest } = line;
        const at = { step: step as number, time: Date.parse(time) };
        const [own, known]: Record<string, number>[] = [{}, {}];
        for (const [name, value] of Object.entries(rest))
          if (typeof value === 'number') (derived.has(name) ? known : own)[name] = value;
        if (Object.keys(known).length > 0) loaded.set(at.step, { time: at.time, values: known });
        if (Object.keys(own).length > 0 || !loaded.has(at.step)) this.merge({ step: at.step, values: own }, at.time);
        if (typeof wall === 'number' && this.rows.has(at.step)) this.rows.get(at.step)!.wall = wall;
        this.lines.push({ step: at.step, from });
      }
      from = next;
    }
    this.derived = loaded;
    this.sorted = undefined;
    this.dirty = Infinity;
  }

  /** Replaces all derived values. Without any row of the trainer, there is a row for each step that has some. */
  derive(rows: DerivedRows): void {
    for (const step of new Set([...this.derived.keys(), ...rows.keys()])) {
      if (this.rows.size > 0 && !this.rows.has(step)) continue;
      if (!areEqual(this.derived.get(step)?.values ?? {}, rows.get(step)?.values ?? {}))
        this.dirty = Math.min(this.dirty, step);
    }
    this.derived = rows;
    this.sorted = undefined;
  }

  /** Returns the names of the metrics that have derived values, sorted. */
  get derivedNames(): string[] {
    const names = new Set<string>();
    for (const step of this.steps)
      for (const name of Object.keys(this.derived.get(step)?.values ?? {}))
        if (!this.numbers.has(name)) names.add(name);
    return [...names].sort();
  }

  /** Steps in ascending order: those of the trainer's rows or, if there are none, those with derived values. */
  get steps(): readonly number[] {
    this.sorted ??= [...(this.rows.size > 0 ? this.rows : this.derived).keys()].sort((a, b) => a - b);
    return this.sorted;
  }

  /** Time of a step's row in milliseconds since 1970. */
  timeOf(step: number): number {
    return (this.rows.get(step) ?? this.derived.get(step))?.time ?? 0;
  }

  /** Returns the value of a metric at a step; undefined if there is none. */
  value(step: number, name: string): number | undefined {
    const number = this.numbers.get(name);
    if (number === undefined) return this.derived.get(step)?.values[name];
    const value = this.rows.get(step)?.cells[number];
    return Number.isFinite(value) ? value : undefined;
  }

  /** Time of the first row, in milliseconds since 1970; undefined if the trainer stores no times. */
  get began(): number | undefined {
    const first = this.rows.get(this.steps[0]);
    return first?.isTimed ? first.time : undefined;
  }

  /** Returns the newest value of the first of these metrics that any row has; undefined if none has. */
  newest(names: readonly string[]): number | undefined {
    for (const name of names)
      for (let i = this.steps.length - 1; i >= 0; i--) {
        const value = this.value(this.steps[i], name);
        if (value !== undefined) return value;
      }
    return undefined;
  }

  /** Returns what is left out because of the limits, in sentences. */
  get limits(): string[] {
    return [...this.cut];
  }

  /** Returns the names of the trainer's metrics, in the order of their first appearance. */
  get keys(): readonly string[] {
    return this.names;
  }

  /**
   * Adds values to a step; values of the same name are replaced. `seen` is the time of a row without a time. Values
   * beyond the limits are left out.
   */
  merge({ step, time, values }: MetricRow, seen: number): void {
    let row = this.rows.get(step);
    if (!row && this.rows.size >= this.most.rows) {
      this.cut.add(
        `the metrics have more than ${this.most.rows} steps: the later ones are not shown; attach fewer steps`,
      );
      return;
    }
    if (!row) {
      row = { time: time ?? seen, isTimed: time !== undefined, cells: new Float64Array(0) };
      this.rows.set(step, row);
      if (this.rows.size === 1) this.replaceDerivedRows();
      if (this.sorted && step > (this.sorted.at(-1) ?? -1)) this.sorted.push(step);
      else this.sorted = undefined;
      this.dirty = Math.min(this.dirty, step);
    } else if (time !== undefined && (!row.isTimed || time < row.time)) {
      if (row.time !== time) this.dirty = Math.min(this.dirty, step);
      [row.time, row.isTimed] = [time, true];
    }
    for (const [name, value] of Object.entries(values)) {
      const number = this.numberOf(name);
      if (number === undefined || !this.hasCell(row, number) || row.cells[number] === value) continue;
      row.cells[number] = value;
      this.dirty = Math.min(this.dirty, step);
    }
  }

  /** Removes the rows after a step, because the trainer went back to it. */
  cutAfter(step: number): void {
    for (const later of this.steps.filter(each => each > step)) {
      this.cells -= this.rows.get(later)!.cells.length;
      this.rows.delete(later);
      this.dirty = Math.min(this.dirty, later);
    }
    this.sorted = undefined;
  }

  /** Writes the changed rows to the log; returns whether there were any. */
  write(log: LineLog): boolean {
    if (this.dirty === Infinity) return false;
    const kept = this.lines.findIndex(({ step }) => step >= this.dirty);
    if (kept >= 0) {
      log.truncateTo(this.lines[kept].from);
      this.lines.length = kept;
    }
    const from = this.dirty;
    const walls = this.wallSeconds();
    let batch: unknown[] = [];
    const flush = (): void => {
      let offset = log.offset;
      for (const line of batch as { step: number }[]) {
        this.lines.push({ step: line.step, from: offset });
        offset += Buffer.byteLength(JSON.stringify(line)) + 1;
      }
      log.appendAll(batch);
      batch = [];
    };
    this.steps.forEach((step, i) => {
      if (step < from) return;
      batch.push(this.line(step, walls?.[i]));
      if (batch.length >= batchLines) flush();
    });
    flush();
    this.dirty = Infinity;
    return true;
  }

  /** The first row of the trainer replaces the rows that have only derived values. */
  private replaceDerivedRows(): void {
    this.sorted = undefined;
    for (const step of this.derived.keys()) this.dirty = Math.min(this.dirty, step);
  }

  private line(step: number, wall: number | undefined): Record<string, string | number> {
    const line: Record<string, string | number> = { step, time: new Date(this.timeOf(step)).toISOString() };
    const seconds = wall ?? this.rows.get(step)?.wall;
    if (seconds !== undefined) line['wall_s'] = Math.round(seconds * 10) / 10;
    for (const [name, value] of Object.entries(this.derived.get(step)?.values ?? {}))
      if (!this.numbers.has(name) && !reserved.has(name)) line[name] = value;
    this.rows.get(step)?.cells.forEach((value, number) => {
      const name = this.names[number];
      if (Number.isFinite(value) && !reserved.has(name)) line[name] = value;
    });
    return line;
  }

  /**
   * Returns the run time at the end of each row in seconds: the sum of the steps' durations, else the time since the
   * first row; undefined if the trainer stores neither.
   */
  private wallSeconds(): number[] | undefined {
    const number = this.stepSeconds.map(name => this.numbers.get(name)).find(found => found !== undefined);
    if (number !== undefined) {
      let sum = 0;
      return this.steps.map(step => (sum += this.rows.get(step)?.cells[number] || 0));
    }
    const began = this.began;
    return began === undefined ? undefined : this.steps.map(step => (this.timeOf(step) - began) / 1000);
  }

  /** Returns the number of a name; undefined if the name is left out. */
  private numberOf(name: string): number | undefined {
    const known = this.numbers.get(name);
    if (known !== undefined) return known;
    if (name.length > this.most.nameLength) {
      this.cut.add(
        `metrics whose names have more than ${this.most.nameLength} characters are not shown: shorten the names`,
      );
      return undefined;
    }
    if (this.names.length >= this.most.names) {
      this.cut.add(
        `the metrics have more than ${this.most.names} names: the others are not shown; attach fewer metrics`,
      );
      return undefined;
    }
    this.numbers.set(name, this.names.length);
    for (const [step, { values }] of this.derived) if (name in values) this.dirty = Math.min(this.dirty, step);
    return this.names.push(name) - 1;
  }

  /** Makes room for all names in a row. Returns whether the row has a cell with this number. */
  private hasCell(row: Row, number: number): boolean {
    if (number < row.cells.length) return true;
    if (this.cells + this.names.length - row.cells.length > this.most.cells) {
      this.cut.add(
        `the metrics have more than ${this.most.cells} values: the others are not shown; attach fewer steps`,
      );
      return false;
    }
    const cells = new Float64Array(this.names.length).fill(Number.NaN);
    cells.set(row.cells);
    this.cells += cells.length - row.cells.length;
    row.cells = cells;
    return true;
  }
}

function areEqual(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every(name => a[name] === b[name]);
}

/** Names that a line has for other purposes. */
const reserved = new Set(['step', 'time', 'wall_s', '__proto__']);
