// The metrics of a run by step, and its diagnoses as a path through the plane of H(Z|X) and I(X;Z). Rows are appended
// while the run trains. A missing value is NaN, for example at steps without a diagnosis.
import { judgedPath, type Estimate, type PathPoint, type StepValue } from '../collapse-path';

export class RunSeries {
  readonly steps: number[] = [];
  /** Incremented by each change. */
  version = 0;
  private readonly columns = new Map<string, number[]>();

  /** Replaces all steps and values. */
  load({ steps, series }: { steps: readonly number[]; series: Readonly<Record<string, Float64Array>> }): void {
    this.steps.length = 0;
    for (const step of steps) this.steps.push(step);
    this.columns.clear();
    this.version++;
    for (const [key, values] of Object.entries(series)) this.columns.set(key, Array.from(values));
  }

  append(lines: readonly ({ step: number } & Record<string, unknown>)[]): void {
    this.version++;
    for (const line of lines) {
      const row = this.steps.push(line.step) - 1;
      for (const [key, value] of Object.entries(line)) {
        if (key === 'step' || typeof value !== 'number') continue;
        const column = this.columns.get(key) ?? new Array<number>(row).fill(NaN);
        this.columns.set(key, column);
        column[row] = value;
      }
      for (const column of this.columns.values()) if (column.length <= row) column[row] = NaN;
    }
  }

  /** Returns the values of a key, one per step; empty if the key was never logged. */
  column(key: string): readonly number[] {
    return this.columns.get(key) ?? [];
  }

  get keys(): string[] {
    return [...this.columns.keys()];
  }

  /** Returns the last row at or before a step; −1 before the first step. */
  rowAt(step: number): number {
    return countUpTo(this.steps.length, row => this.steps[row], step) - 1;
  }

  /** Returns the finite values of a key, with their steps. */
  points(key: string): StepValue[] {
    const found: StepValue[] = [];
    this.column(key).forEach((value, i) => {
      if (Number.isFinite(value)) found.push({ step: this.steps[i], value });
    });
    return found;
  }
}

/**
 * The families of a diagnosis. Each family is a different sample of pairs of a prompt and a reasoning text. `name` is
 * the prefix of a family's metrics.
 */
export const families = [
  { name: 'collapse_first_turn_sample', label: 'First turns', title: 'First turns; one column per prompt group' },
  {
    name: 'collapse_trajectory_sample',
    label: 'Trajectories',
    title: 'Turns sampled in two stages: first an episode, then one of its turns',
  },
  { name: 'collapse_turn_sample', label: 'Turns', title: 'Turns sampled uniformly from the rollout' },
] as const;
export type FamilyName = (typeof families)[number]['name'];

/**
 * Returns the diagnoses of a family, ordered by step. A diagnosis is omitted unless its I(X;Z) and H(Z|X) are both
 * finite.
 */
export function pathOf(series: RunSeries, family: string): PathPoint[] {
  const column = (suffix: string) => series.column(`${family}/${suffix}`);
  const estimate = (suffix: string) => {
    const [value, low, high] = [column(suffix), column(`${suffix}_ci_low`), column(`${suffix}_ci_high`)];
    return (row: number): Estimate => ({ value: value[row] ?? NaN, low: low[row] ?? NaN, high: high[row] ?? NaN });
  };
  const [entropy, information, retrieval] = [
    estimate('conditional_entropy_est'),
    estimate('mi_estimate'),
    estimate('retrieval_accuracy'),
  ];
  const [bound, chance] = [column('mi_upper_bound'), column('retrieval_chance_level')];
  const thoughts = series.column('thoughts/rate');
  const path: Omit<PathPoint, 'judgement'>[] = [];
  column('mi_estimate').forEach((mi, row) => {
    const at = { entropy: entropy(row), information: information(row), retrieval: retrieval(row) };
    if (Number.isFinite(mi) && Number.isFinite(at.entropy.value))
      path.push({
        step: series.steps[row],
        ...at,
        bound: bound[row] ?? NaN,
        chance: chance[row] ?? NaN,
        thoughts: thoughts[row] ?? NaN,
      });
  });
  return judgedPath(path);
}

/** Returns the number of points of a path at or before a step. */
export const reached = (path: readonly { step: number }[], step: number): number =>
  countUpTo(path.length, i => path[i].step, step);

/**
 * Returns the number of values ≤ `value` in a sequence of `length` ascending values. `at` returns a value of the
 * sequence by index.
 */
function countUpTo(length: number, at: (i: number) => number, value: number): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
