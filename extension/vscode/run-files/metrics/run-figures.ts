// The figures of many runs: for each metric the last, the highest and the lowest value, and values at requested steps.
// The metrics of a run are read only if metrics.jsonl has changed or a value at another step is requested; a query that
// finds nothing new costs one `lstat` per run. The complete columns stay in memory only for runs that are still
// growing, whose new lines alone are then read. Must not import `vscode`.
import { join } from 'node:path';
import { bestOf, type MetricValue } from '../../../run-data/table-columns';
import { runFiles } from '../../../run-data/run-file-names';
import { stampOf } from '../small-file';
import type { ColumnTable } from './column-table';
import { MetricColumns } from './metric-columns';

/** Reads the metrics of a run; a second `update` reads only the lines that were appended. */
export interface MetricReader {
  update(): Promise<ColumnTable>;
}

export interface MetricRequest {
  key: string;
  at: MetricValue;
}

interface Figure {
  last: number;
  highest: number;
  lowest: number;
}

interface Entry {
  stamp: string;
  figures: Map<string, Figure>;
  /** Values at steps, by `step,key`; NaN without a value. */
  atSteps: Map<string, number>;
  /** Kept while the run grows. */
  reader?: MetricReader;
  /** The query in progress; queries of one run follow each other. */
  current: Promise<unknown>;
}

export class RunFigures {
  private readonly entries = new Map<string, Entry>();

  /** `open` creates the reader of a run folder. */
  constructor(private readonly open: (folder: string) => MetricReader) {}

  /** Returns figures whose readers cache columns in the folder `cache`; null caches in memory only. */
  static of(cache: string | null): RunFigures {
    return new RunFigures(folder => new MetricColumns(folder, cache));
  }

  /**
   * Returns the values of metrics in a run, null where the run has none, and all metric keys of the run. A value at a
   * step is the newest value up to this step; it is null if the run has not reached the step.
   * @throws file errors other than a missing file
   */
  values(
    { folder, live }: { folder: string; live: boolean },
    requests: readonly MetricRequest[],
  ): Promise<{ values: (number | null)[]; keys: string[] }> {
    const entry = this.entries.get(folder) ?? {
      stamp: '',
      figures: new Map<string, Figure>(),
      atSteps: new Map<string, number>(),
      current: Promise.resolve(),
    };
    this.entries.set(folder, entry);
    const next = entry.current.then(async () => {
      await this.refresh(folder, entry, live, requests);
      const values = requests.map(request => {
        const value = valueOf(entry, request);
        return Number.isFinite(value) ? value : null;
      });
      return { values, keys: [...entry.figures.keys()] };
    });
    entry.current = next.catch(() => undefined);
    return next;
  }

  /** Frees the figures of a deleted run. */
  forget(folder: string): void {
    this.entries.delete(folder);
  }

  private async refresh(
    folder: string,
    entry: Entry,
    live: boolean,
    requests: readonly MetricRequest[],
  ): Promise<void> {
    const stamp = await stampOf(join(folder, runFiles.metrics)); // before the read, so that later lines are not missed
    const steps = requests.filter(({ key, at }) => typeof at === 'number' && !entry.atSteps.has(`${at},${key}`));
    if (stamp === entry.stamp && steps.length === 0) return;
    const reader = entry.reader ?? this.open(folder);
    const table = await reader.update();
    entry.reader = live ? reader : undefined;
    if (stamp !== entry.stamp) {
      entry.figures = new Map(table.keys.map(key => [key, figureOf(table.column(key))]));
      const known = [...entry.atSteps.keys()];
      entry.atSteps = new Map(known.map(id => [id, valueAtStep(table, ...stepAndKey(id))]));
    }
    for (const { key, at } of steps)
      if (typeof at === 'number') entry.atSteps.set(`${at},${key}`, valueAtStep(table, at, key));
    entry.stamp = stamp;
  }
}

function valueOf({ figures, atSteps }: Entry, { key, at }: MetricRequest): number {
  if (typeof at === 'number') return atSteps.get(`${at},${key}`) ?? Number.NaN;
  const figure = figures.get(key);
  return figure?.[at === 'best' ? bestOf(key) : 'last'] ?? Number.NaN;
}

function figureOf(column: Float64Array): Figure {
  const figure = { last: Number.NaN, highest: Number.NaN, lowest: Number.NaN };
  for (const value of column) {
    if (Number.isNaN(value)) continue;
    figure.last = value;
    if (!(figure.highest >= value)) figure.highest = value;
    if (!(figure.lowest <= value)) figure.lowest = value;
  }
  return figure;
}

function valueAtStep(table: ColumnTable, step: number, key: string): number {
  const steps = table.column('step');
  if (steps.length === 0 || steps[steps.length - 1] < step) return Number.NaN;
  const column = table.column(key);
  for (let row = steps.findLastIndex(at => at <= step); row >= 0; row--)
    if (!Number.isNaN(column[row])) return column[row];
  return Number.NaN;
}

function stepAndKey(id: string): [step: number, key: string] {
  const comma = id.indexOf(',');
  return [Number(id.slice(0, comma)), id.slice(comma + 1)];
}
