// Decides a claim from the metrics of a sweep's runs. Differences are paired by seed. A test counts as reproduced only if
// both intervals of its statistic, Student's t and the bootstrap's, lie on the expected side, because the bootstrap's is
// too narrow for few seeds. If a required test fails, the setting could not show the claim. Pure functions.
import { bootstrapInterval, clusteredCorrelation, pairedDifference } from '../../common/paired-statistics';
import type { Cluster, Interval } from '../../common/paired-statistics';
import { intervalSeeds } from '../../common/mean-estimate';
import { rankCorrelation, resampledCorrelation } from '../../common/rank-correlation';
import { alarmRules } from '../alarm-rules';
import { alarmFigures, byArms, byOutcome, calibratePromptDependence } from './alarm-lead';
import type { AlarmFigures, Calibration } from './alarm-lead';
import type { Claim, ClaimTest, Measure } from './claim-schema';
import { measureRun } from './run-measure';
import type { MeasuredRun } from './run-measure';

/** `too few runs`: fewer than three seeds have a value, so no interval can be computed. */
export type TestVerdict = 'reproduced' | 'opposite' | 'not reproduced' | 'too few runs';
/** `no experiment`: a required test is not reproduced, so the setting cannot decide the claim. */
export type ClaimVerdict = TestVerdict | 'no experiment';

/** A statistic with its intervals. `n` is the number of pairs, runs or observations. */
interface Statistic {
  n: number;
  value: number;
  /** Interval of the bootstrap over seeds or runs; null for fewer than three. */
  bootstrap: Interval | null;
  /** Interval of Student's t; null for fewer than three, and for correlations over steps. */
  student: Interval | null;
  /** Cohen's d_z of paired values; null for other statistics, and if the values are equal. */
  effectSize: number | null;
}

export interface TestResult {
  name: string;
  test: ClaimTest['test'];
  required: boolean;
  verdict: TestVerdict;
  /** The statistic on which the verdict rests; null if there are no values, and for alarms. */
  statistic: Statistic | null;
  /** Values of the single pairs or runs, by seed; empty for correlations over steps and for alarms. */
  values: { seed: number; value: number }[];
  /** Further statistics by name, on which the verdict does not rest. */
  others: Record<string, Statistic>;
  alarms: AlarmFigures | null;
  calibration: Calibration | null;
}

export interface ClaimResult {
  number: number;
  title: string;
  paper: string;
  verdict: ClaimVerdict;
  tests: TestResult[];
}

/** Seed of the bootstraps, so that a claim's intervals are the same in every evaluation. */
const resampling = { seed: 20 } as const;

/** Evaluates all tests of a claim. Arms without runs count as unfinished. */
export function judgeClaim(claim: Claim, runs: readonly MeasuredRun[]): ClaimResult {
  const tests = claim.tests.map(test => judgeTest(test, runs));
  const { number, title, paper } = claim;
  return { number, title, paper, verdict: claimVerdict(tests), tests };
}

/** Combines the verdicts of tests: one opposite test decides, and reproduced needs all tests. */
export function claimVerdict(tests: readonly Pick<TestResult, 'required' | 'verdict'>[]): ClaimVerdict {
  const of = (verdict: TestVerdict) => tests.filter(test => test.verdict === verdict);
  if (of('too few runs').length > 0) return 'too few runs';
  if (tests.some(({ required, verdict }) => required && verdict !== 'reproduced')) return 'no experiment';
  if (of('opposite').length > 0) return 'opposite';
  return of('reproduced').length === tests.length ? 'reproduced' : 'not reproduced';
}

/** Evaluates one test. */
export function judgeTest(test: ClaimTest, runs: readonly MeasuredRun[]): TestResult {
  const { name, required } = test;
  const blank = { name, test: test.test, required, values: [], others: {}, alarms: null, calibration: null };
  switch (test.test) {
    case 'difference': {
      const pairs = pairedBySeed(runs, test.arm, test.against, test.measure);
      const statistic = ofPairs(
        pairs.map(({ against }) => against),
        pairs.map(({ arm }) => arm),
      );
      const values = pairs.map(({ seed, arm, against }) => ({ seed, value: arm - against }));
      const verdict =
        test.expect === 'equal'
          ? equalVerdict(statistic, test.least)
          : directedVerdict(statistic, test.expect === 'higher' ? 1 : -1, test.least);
      return { ...blank, verdict, statistic, values };
    }
    case 'level': {
      const values = valuesOf(runs, test.arm, test.measure);
      const statistic = ofValues(values.map(({ value }) => value));
      return { ...blank, verdict: levelVerdict(statistic, test.above, test.below), statistic, values };
    }
    case 'trend': {
      const values = trendValues(test, runs);
      const statistic = ofValues(values.map(({ value }) => value));
      return { ...blank, verdict: directedVerdict(statistic, test.expect === 'rises' ? 1 : -1, 0), statistic, values };
    }
    case 'correlation':
      return { ...blank, ...correlationResult(test, runs) };
    case 'alarms': {
      const rules = test.alarms.map(alarm => alarmRules[alarm]);
      const divided = test.arms ? byArms(runs, test.arms, test.from) : byOutcome(runs, test.from);
      const alarms = alarmFigures(divided, rules, test.from);
      const enough = alarms.collapsed >= intervalSeeds && alarms.healthy >= intervalSeeds;
      const good = alarms.detected >= test.detected && alarms.falseAlarms <= test.false_alarms;
      const verdict = !enough ? 'too few runs' : good ? 'reproduced' : 'not reproduced';
      const calibration = calibratePromptDependence(divided, test.from);
      return { ...blank, verdict, statistic: null, alarms, calibration };
    }
  }
}

function correlationResult(
  { x, y, against, arms, expect }: Extract<ClaimTest, { test: 'correlation' }>,
  runs: readonly MeasuredRun[],
): Pick<TestResult, 'verdict' | 'statistic' | 'values' | 'others'> {
  const own = runs.filter(({ arm }) => arms === undefined || arms.includes(arm));
  const of = (metric: string): { seed: number; cluster: Cluster }[] =>
    own.flatMap(({ seed, steps }) => {
      const both = steps.filter(metrics => Number.isFinite(metrics[metric]) && Number.isFinite(metrics[y]));
      const cluster = { x: both.map(metrics => metrics[metric]), y: both.map(metrics => metrics[y]) };
      return both.length > 1 ? [{ seed, cluster }] : [];
    });
  const pooled = (metric: string): Statistic | null => {
    const clusters = of(metric).map(({ cluster }) => cluster);
    if (clusters.length === 0) return null;
    const { rho, interval, n } = clusteredCorrelation(clusters, resampling);
    return { n, value: rho, bootstrap: interval, student: null, effectSize: null };
  };
  const byRun = (metric: string): { seed: number; value: number }[] =>
    of(metric).map(({ seed, cluster }) => ({ seed, value: rankCorrelation(cluster.x, cluster.y) }));
  const statistic = pooled(x);
  const values = byRun(x);
  const others: Record<string, Statistic> = {};
  const add = (name: string, found: Statistic | null): void => {
    if (found) others[name] = found;
  };
  add(`${x} by run`, ofValues(values.map(({ value }) => value)));
  const verdict = directedVerdict(statistic, expect === 'positive' ? 1 : -1, 0);
  if (against === undefined) return { verdict, statistic, values, others };
  add(`${against} pooled`, pooled(against));
  add(`${against} by run`, ofValues(byRun(against).map(({ value }) => value)));
  const advantage = advantageOf(own, x, against, y, expect === 'positive' ? 1 : -1);
  add(`advantage of ${x}`, advantage);
  const better = directedVerdict(advantage, 1, 0);
  return { verdict: verdict === 'reproduced' ? better : verdict, statistic, values, others };
}

/** The correlation of x with y, in the expected direction, minus the absolute correlation of `against` with y. */
function advantageOf(
  runs: readonly MeasuredRun[],
  x: string,
  against: string,
  y: string,
  sign: 1 | -1,
): Statistic | null {
  const rows = runs.map(({ steps }) =>
    steps.filter(metrics => [x, against, y].every(key => Number.isFinite(metrics[key]))),
  );
  const used = rows.filter(steps => steps.length > 1);
  if (used.length === 0) return null;
  const [own, other] = [x, against].map(key =>
    resampledCorrelation(
      used.map(steps => ({ x: steps.map(metrics => metrics[key]), y: steps.map(metrics => metrics[y]) })),
    ),
  );
  const difference = (drawn: readonly number[]): number => sign * own(drawn) - Math.abs(other(drawn));
  const all = [...used.keys()];
  const bootstrap = bootstrapInterval(all, difference, { ...resampling, resamples: 2000 });
  return { n: used.flat().length, value: difference(all), bootstrap, student: null, effectSize: null };
}

/** Spearman's correlation of a measure with its position, for each run or seed with a value at every position. */
function trendValues(
  { arm, metrics, arms, measure }: Extract<ClaimTest, { test: 'trend' }>,
  runs: readonly MeasuredRun[],
): { seed: number; value: number }[] {
  const rows = metrics
    ? runs
        .filter(run => arm === undefined || run.arm === arm)
        .map(run => ({ seed: run.seed, row: metrics.map(metric => measureRun(run, { ...measure, metric })) }))
    : [...new Set(runs.map(({ seed }) => seed))].map(seed => ({
        seed,
        row: arms!.map(name => {
          const run = runs.find(each => each.arm === name && each.seed === seed);
          return run ? measureRun(run, measure) : null;
        }),
      }));
  return rows.flatMap(({ seed, row }) => {
    const found = row.filter(value => value !== null);
    return found.length === row.length ? [{ seed, value: rankCorrelation([...row.keys()], found) }] : [];
  });
}

function valuesOf(runs: readonly MeasuredRun[], arm: string, measure: Measure): { seed: number; value: number }[] {
  return runs
    .filter(run => run.arm === arm)
    .flatMap(run => {
      const value = measureRun(run, measure);
      return value === null ? [] : [{ seed: run.seed, value }];
    });
}

function pairedBySeed(
  runs: readonly MeasuredRun[],
  arm: string,
  against: string,
  measure: Measure,
): { seed: number; arm: number; against: number }[] {
  const others = new Map(valuesOf(runs, against, measure).map(({ seed, value }) => [seed, value]));
  return valuesOf(runs, arm, measure).flatMap(({ seed, value }) => {
    const other = others.get(seed);
    return other === undefined ? [] : [{ seed, arm: value, against: other }];
  });
}

function ofPairs(a: readonly number[], b: readonly number[]): Statistic | null {
  const found = pairedDifference(a, b, resampling);
  return found && { ...found, value: found.mean };
}

const ofValues = (values: readonly number[]): Statistic | null =>
  ofPairs(
    values.map(() => 0),
    values,
  );

/** The part of the line that holds both intervals; null if an interval is missing that the statistic should have. */
function hullOf({ bootstrap, student }: Statistic): Interval | null {
  if (!bootstrap) return null;
  return {
    low: Math.min(bootstrap.low, student?.low ?? Infinity),
    high: Math.max(bootstrap.high, student?.high ?? -Infinity),
  };
}

function directedVerdict(statistic: Statistic | null, sign: 1 | -1, least: number): TestVerdict {
  const hull = statistic && hullOf(statistic);
  if (!statistic || !hull) return 'too few runs';
  const [value, low, high] =
    sign === 1 ? [statistic.value, hull.low, hull.high] : [-statistic.value, -hull.high, -hull.low];
  if (low > 0 && value >= least) return 'reproduced';
  return high < 0 ? 'opposite' : 'not reproduced';
}

function equalVerdict(statistic: Statistic | null, most: number): TestVerdict {
  const hull = statistic && hullOf(statistic);
  if (!hull) return 'too few runs';
  if (hull.low > -most && hull.high < most) return 'reproduced';
  return hull.low > most || hull.high < -most ? 'opposite' : 'not reproduced';
}

function levelVerdict(statistic: Statistic | null, above = -Infinity, below = Infinity): TestVerdict {
  const hull = statistic && hullOf(statistic);
  if (!hull) return 'too few runs';
  if (hull.low > above && hull.high < below) return 'reproduced';
  return hull.high < above || hull.low > below ? 'opposite' : 'not reproduced';
}
