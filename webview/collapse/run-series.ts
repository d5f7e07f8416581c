// The run's numbers by step, as they grow, and what the page makes of them: the path through the plane of H(Z|X) and
// I(X;Z). A value that a step lacks is NaN; diagnoses are logged at some steps only, everything else at nearly all.
import type { CollapseSnapshot } from '../../extension/protocol/collapse-page';
import { judgeRegimes, retrievalOverChance, type RegimeJudgement } from '../../extension/run-data/regimes';

export class RunSeries {
  readonly steps: number[] = [];
  /** Grows with each change. */
  version = 0;
  private readonly columns = new Map<string, number[]>();

  /** Takes the place of all there was. */
  load({ steps, series }: Pick<CollapseSnapshot, 'steps' | 'series'>): void {
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

  /** The values of a key, as long as `steps`; empty where it was never logged. */
  column(key: string): readonly number[] {
    return this.columns.get(key) ?? [];
  }

  get keys(): string[] {
    return [...this.columns.keys()];
  }

  /** The last row at or before a step; −1 where there is none. */
  rowAt(step: number): number {
    return countUpTo(this.steps.length, row => this.steps[row], step) - 1;
  }

  /** The finite values of a key, with their steps. */
  points(key: string): StepValue[] {
    const found: StepValue[] = [];
    this.column(key).forEach((value, i) => {
      if (Number.isFinite(value)) found.push({ step: this.steps[i], value });
    });
    return found;
  }
}

export interface StepValue {
  step: number;
  value: number;
}

/** A value with its 95 % interval; the ends are NaN where none was logged. */
export interface Estimate {
  value: number;
  low: number;
  high: number;
}

/** What one diagnosis says of a family of pairs. */
export interface PathPoint {
  step: number;
  /** H(Z|X), nats per token. */
  entropy: Estimate;
  /** I(X;Z), nats per token, at most `bound` = ln N. */
  information: Estimate;
  bound: number;
  retrieval: Estimate;
  chance: number;
  /** Made from this diagnosis and the ones before it. */
  judgement: RegimeJudgement;
}

/** The families of pairs that were diagnosed, by the metrics' prefixes. */
export const families = [
  { name: 'collapse_first_turn_sample', label: 'First turns', title: 'First turns; a column for each prompt group' },
  {
    name: 'collapse_trajectory_sample',
    label: 'Trajectories',
    title: 'Turns drawn from whole episodes: an episode first, then one of its turns',
  },
  { name: 'collapse_turn_sample', label: 'Turns', title: 'Turns of the rollout, each as likely as any other' },
] as const;
export type FamilyName = (typeof families)[number]['name'];

/** The diagnoses of a family in order; those without both coordinates are left out. */
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
  const path: Omit<PathPoint, 'judgement'>[] = [];
  column('mi_estimate').forEach((mi, row) => {
    const at = { entropy: entropy(row), information: information(row), retrieval: retrieval(row) };
    if (Number.isFinite(mi) && Number.isFinite(at.entropy.value))
      path.push({ step: series.steps[row], ...at, bound: bound[row] ?? NaN, chance: chance[row] ?? NaN });
  });
  return judgedPath(path);
}

/** The points, in order, with the regime of each. */
export function judgedPath(points: readonly Omit<PathPoint, 'judgement'>[]): PathPoint[] {
  const judgements = judgeRegimes(
    points.map(({ information, entropy, retrieval, chance }) => ({
      information: information.value,
      informationLow: information.low,
      entropy: entropy.value,
      retrieval: retrievalOverChance(retrieval.value, chance),
    })),
  );
  return points.map((point, i) => ({ ...point, judgement: judgements[i] }));
}

/** How many points of a path stand at or before a step. */
export const reached = (path: readonly { step: number }[], step: number): number =>
  countUpTo(path.length, i => path[i].step, step);

/** Of ascending values, how many are not above `value`. */
function countUpTo(length: number, at: (i: number) => number, value: number): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
