// Compares the points of a sweep: their final and best validation success, as means over seeds with 95 % confidence
// intervals. Also finds the keys in which the points differ. The comparison depends only on the run folders, so it can
// be computed before the sweep has finished.
import { estimate } from '../../common/mean-estimate';
import type { Estimate } from '../../common/mean-estimate';
import { maximum } from '../../common/lists';
import { UserError } from '../../common/user-error';
import type { RunState } from '../../run-data/run-status-file';
import { metricLines } from '../run-lifecycle/follow';
import { summarize } from '../output/run-summary';
import type { RunFolder } from '../../trainer/store/run-folder';
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
  runs: Outcome[];
}

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
  const points = plan.points.map((point, p): Row => {
    const own = outcomes.filter(outcome => outcome.point === p).map(({ point: _, ...outcome }) => outcome);
    const finished = own.filter(({ state }) => state === 'finished');
    const over = (key: 'final' | 'best') => estimate(finished.map(run => run[key]).filter(x => x !== null));
    return { ...point, final: over('final'), best: over('best'), runs: own };
  });
  return { sweep: plan.id, keys: plan.keys, points };
}

/**
 * Formats the comparison as a text table: one line per point, with a column for each key in which the points differ.
 */
export function comparisonTable({ keys, points }: Comparison): string {
  const named = points.some(({ name }) => name !== undefined);
  const severalConfigs = new Set(points.map(({ config }) => config)).size > 1;
  const head = [
    ...(severalConfigs ? ['config'] : []),
    ...(named ? ['name'] : []),
    ...keys.map(key => (keys.filter(k => last(k) === last(key)).length > 1 ? key : last(key))),
    'final success',
    'best success',
    'runs',
  ];
  const body = points.map(row => [
    ...(severalConfigs ? [row.config] : []),
    ...(named ? [row.name ?? ''] : []),
    ...keys.map(key => shown(row.values[key])),
    percent(row.final),
    percent(row.best),
    counted(row.runs),
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
 * finished.
 */
export function incomplete(comparison: Comparison): string | undefined {
  const runs = comparison.points.flatMap(({ runs }) => runs);
  const left = runs.filter(({ state }) => state !== 'finished');
  if (left.length === 0) return undefined;
  const failed = left.filter(({ state }) => state === 'failed').map(({ run }) => run);
  const damaged = left.find(({ error }) => error !== undefined);
  if (damaged) return `sweep ${comparison.sweep}: ${damaged.run} cannot be compared: ${damaged.error}`;
  const why = failed.length > 0 ? ` (failed: ${failed.join(', ')})` : '';
  return `sweep ${comparison.sweep}: ${left.length} of ${runs.length} runs are not finished${why}: run the same command to continue them`;
}

/** Parses a number of jobs from 1 to 64. Throws a UserError. */
export function jobCount(text: string): number {
  const jobs = Number(text);
  if (Number.isInteger(jobs) && jobs >= 1 && jobs <= 64) return jobs;
  throw new UserError(`--jobs is ${JSON.stringify(text)}: use an integer from 1 to 64`);
}

const last = (key: string): string => key.split('.').at(-1)!;

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function percent(estimated: Estimate | null): string {
  if (estimated === null) return '–';
  const mean = `${(estimated.mean * 100).toFixed(1)} %`;
  return estimated.interval === null ? mean : `${mean} ± ${(estimated.interval * 100).toFixed(1)}`;
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
