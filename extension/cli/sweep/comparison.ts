// Compares the points of a sweep: their final and best validation success, as means over seeds with 95 % confidence
// intervals, and the difference of each point from the first one, paired by seed. The comparison depends only on the run
// folders, so it can be computed before the sweep has finished.
import { estimate } from '../../common/mean-estimate';
import type { Estimate } from '../../common/mean-estimate';
import { maximum } from '../../common/lists';
import { formatSigned } from '../../common/numbers';
import { pairedDifference, type PairedDifference } from '../../common/paired-statistics';
import { UserError } from '../../common/user-error';
import type { RunState } from '../../run-data/run-status-file';
import type { PointStop } from '../../run-data/sweep-file';
import { metricLines } from '../run-lifecycle/follow';
import { summarize } from '../output/run-summary';
import type { RunFolder } from '../../trainer/store/run-folder';
import { mostJobs } from './capacity';
import { earlyStops } from './early-stops';
import type { SweepPlan, SweepPoint } from './sweep-plan';

/**
 * Current result of one run of the sweep. `run` is null before the run is created; validation results are null before
 * the first validation.
 */
export interface Outcome {
  run: string | null;
  seed: number;
  /** `new`: the run has not been created. `damaged`: the run's files cannot be used; `error` contains the reason. */
  state: RunState | 'new' | 'damaged';
  steps: number;
  final: number | null;
  best: number | null;
  best_step: number | null;
  wall_s: number;
  error?: string;
}

export interface Row extends SweepPoint {
  /** Mean and confidence interval over the finished runs; null if no run is finished. */
  final: Estimate | null;
  best: Estimate | null;
  /**
   * Final success minus the final success of the first point, over the seeds of which both have a finished run; null for
   * the first point and without such seeds.
   */
  difference: PairedDifference | null;
  /** Set if the point was stopped early; its runs are not started again. */
  stopped: PointStop | null;
  runs: Outcome[];
}

/** Seed of the bootstrap of the differences. */
const bootstrapSeed = 1;

export interface Comparison {
  sweep: string;
  /** Keys in which the points differ. */
  keys: string[];
  points: Row[];
}

/** Returns the result of one run. If its metrics or status cannot be read, the state is `damaged`. */
export function outcomeOf(folder: RunFolder | undefined, seed: number): Outcome {
  const nothing = { run: folder?.id ?? null, seed, steps: 0, final: null, best: null, best_step: null, wall_s: 0 };
  if (!folder) return { ...nothing, state: 'new' };
  try {
    return readOutcome(folder, seed);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { ...nothing, state: 'damaged', error: error.message };
  }
}

function readOutcome(folder: RunFolder, seed: number): Outcome {
  const { state, steps, validation, wall_s } = summarize(folder, metricLines(folder), [], folder.readStatus());
  const best = validation.reduce<(typeof validation)[number] | null>(
    (top, at) => (top === null || at.success > top.success ? at : top),
    null,
  );
  const final = validation.at(-1)?.success ?? null;
  const top = { best: best?.success ?? null, best_step: best?.step ?? null };
  return { run: folder.id, seed, state, steps, final, ...top, wall_s };
}

/** Compares the points of a plan; `runs` maps the index of a run in `plan.members` to the run's folder. */
export function compare(plan: SweepPlan, runs: ReadonlyMap<number, RunFolder>): Comparison {
  const outcomes = plan.members.map((member, m) => ({ point: member.point, ...outcomeOf(runs.get(m), member.seed) }));
  const failed = new Set(outcomes.flatMap(({ state }, m) => (state === 'failed' ? [m] : [])));
  const { stopped } = earlyStops(plan, runs, failed);
  const runsByPoint = plan.points.map((_, p) =>
    outcomes.filter(outcome => outcome.point === p).map(({ point: _point, ...outcome }) => outcome),
  );
  const points = plan.points.map((point, p): Row => {
    const own = runsByPoint[p];
    const over = (key: 'final' | 'best') => estimate(finishedValues(own, key).map(([, value]) => value));
    return {
      ...{ ...point, final: over('final'), best: over('best') },
      difference: p === 0 ? null : differenceOf(runsByPoint[0], own),
      stopped: stopped.get(p) ?? null,
      runs: own,
    };
  });
  return { sweep: plan.id, keys: plan.keys, points };
}

/** Returns seed and value of each finished run that has a value. */
const finishedValues = (runs: readonly Outcome[], key: 'final' | 'best'): [seed: number, value: number][] =>
  runs.flatMap(run => (run.state === 'finished' && run[key] !== null ? [[run.seed, run[key]]] : []));

/** Returns the paired difference of the final success of two points, `own` minus `base`. */
function differenceOf(base: readonly Outcome[], own: readonly Outcome[]): PairedDifference | null {
  const values = new Map(finishedValues(own, 'final'));
  const pairs = finishedValues(base, 'final').filter(([seed]) => values.has(seed));
  return pairedDifference(
    pairs.map(([, value]) => value),
    pairs.map(([seed]) => values.get(seed)!),
    { seed: bootstrapSeed },
  );
}

/**
 * Formats the comparison as a text table: one line per point, with a column for each key in which the points differ.
 */
export function comparisonTable({ keys, points }: Comparison): string {
  const named = points.some(({ name }) => name !== undefined);
  const isPaired = points.some(({ difference }) => difference !== null);
  const severalConfigs = new Set(points.map(({ config }) => config)).size > 1;
  const head = [
    ...(severalConfigs ? ['config'] : []),
    ...(named ? ['name'] : []),
    ...keys.map(key => (keys.filter(k => last(k) === last(key)).length > 1 ? key : last(key))),
    'final success',
    'best success',
    ...(isPaired ? ['difference'] : []),
    'runs',
  ];
  const body = points.map(row => [
    ...(severalConfigs ? [row.config] : []),
    ...(named ? [row.name ?? ''] : []),
    ...keys.map(key => shown(row.values[key])),
    percent(row.final, finishedValues(row.runs, 'final')),
    percent(row.best, finishedValues(row.runs, 'best')),
    ...(isPaired ? [differenceText(row.difference)] : []),
    counted(row.runs) + (row.stopped ? ` (halving, step ${row.stopped.step})` : ''),
  ]);
  const widths = head.map((text, c) =>
    maximum(
      body.map(cells => cells[c].length),
      text.length,
    ),
  );
  return [head, ...body]
    .map(cells =>
      cells
        .map((text, c) => text.padEnd(widths[c]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Formats the comparison as CSV (RFC 4180), one line per run. */
export function comparisonCsv({ keys, points }: Comparison): string {
  const columns = ['run', 'seed', 'state', 'steps', 'final', 'best', 'best_step', 'wall_s'] as const;
  const head = ['point', 'config', 'name', ...keys, ...columns];
  const lines = points.flatMap(({ label, config, name, values, runs }) =>
    runs.map(run => [label, config, name, ...keys.map(key => values[key]), ...columns.map(column => run[column])]),
  );
  return [head, ...lines].map(cells => `${cells.map(csvCell).join(',')}\r\n`).join('');
}

/**
 * Returns one sentence with the number of unfinished runs and the names of failed runs; undefined if all runs are
 * finished or belong to points that were stopped early.
 */
export function incomplete(comparison: Comparison): string | undefined {
  const runs = comparison.points.flatMap(point => (point.stopped ? [] : point.runs));
  const left = runs.filter(({ state }) => state !== 'finished');
  if (left.length === 0) return undefined;
  const failed = left.filter(({ state }) => state === 'failed').map(({ run }) => run);
  const damaged = left.find(({ error }) => error !== undefined);
  if (damaged) return `sweep ${comparison.sweep}: ${damaged.run} cannot be compared: ${damaged.error}`;
  const why = failed.length > 0 ? ` (failed: ${failed.join(', ')})` : '';
  return `sweep ${comparison.sweep}: ${left.length} of ${runs.length} runs are not finished${why}: run the same command to continue them`;
}

/** Parses a number of jobs from 1 to 64, or `auto`. Throws a UserError. */
export function jobCount(text: string): number | 'auto' {
  if (text === 'auto') return text;
  const jobs = Number(text);
  if (Number.isInteger(jobs) && jobs >= 1 && jobs <= mostJobs) return jobs;
  throw new UserError(`--jobs is ${JSON.stringify(text)}: use an integer from 1 to ${mostJobs}, or auto`);
}

/** Parses a number of retries from 0 to 10. Throws a UserError. */
export function retryCount(text: string): number {
  const retries = Number(text);
  if (text.trim() !== '' && Number.isInteger(retries) && retries >= 0 && retries <= 10) return retries;
  throw new UserError(`--retries is ${JSON.stringify(text)}: use an integer from 0 to 10`);
}

const last = (key: string): string => key.split('.').at(-1)!;

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Formats an estimate as mean and interval or, below the number of seeds that an interval needs, as the single values. */
function percent(estimated: Estimate | null, values: readonly (readonly [seed: number, value: number])[]): string {
  if (estimated === null) return '–';
  const share = (value: number): string => (value * 100).toFixed(1);
  if (estimated.interval === null) return values.map(([, value]) => `${share(value)} %`).join(', ');
  return `${share(estimated.mean)} % ± ${share(estimated.interval)}`;
}

/** Formats a difference in percentage points, such as `+18.8 ± 9.4 (d 2.10)`; without interval below three pairs. */
function differenceText(difference: PairedDifference | null): string {
  if (difference === null) return '–';
  const { mean, student, effectSize } = difference;
  const points = `${mean >= 0 ? '+' : '−'}${Math.abs(mean * 100).toFixed(1)}`;
  if (student === null) return points;
  const size = effectSize === null ? '' : ` (d ${formatSigned(effectSize)})`;
  return `${points} ± ${((student.high - mean) * 100).toFixed(1)}${size}`;
}

function counted(runs: readonly Outcome[]): string {
  const counts = new Map<string, number>();
  for (const { state } of runs) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, n]) => `${n} ${state}`).join(', ');
}

function csvCell(value: unknown): string {
  const text =
    value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
