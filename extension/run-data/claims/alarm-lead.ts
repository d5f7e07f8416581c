// How early alarms come before a run collapses, and how often they are raised in runs that do not. The alarms are
// computed again from the metrics, so that other thresholds than the shipped ones can be tried: thresholds are chosen on
// one half of the seeds and judged on the other. Pure functions.
import type { AlarmRule } from '../../../envs/api/plugins/alarm';
import { minimum } from '../../common/lists';
import { alarmRules, boundsOver, shareOfBest, streaksOver } from '../alarm-rules';
import type { StepValue } from '../collapse-path';
import { movingMeans } from '../lasting-falls';
import { lastingFall, seriesOf } from './run-measure';
import type { MeasuredRun } from './run-measure';

/** Smallest gain of validation success of which a run can lose half. */
const smallestGain = 0.1;
/** Number of neighbouring validations that are averaged. */
const window = 2;

/** Returns the first validation success of a run, and the means of neighbouring ones. */
function successOf({ steps }: MeasuredRun): { start: number; means: StepValue[] } {
  const points = seriesOf(steps, { metric: 'success', from: 0 });
  return { start: points.at(0)?.value ?? NaN, means: movingMeans(points, window) };
}

/**
 * Returns the step of the validation from which success stays below half of its gain so far; null if the run never
 * gained 10 points, or has not lost half of its gain.
 * @param from first step at which the run can collapse
 */
export function halfGainLost(run: MeasuredRun, from: number): number | null {
  const { start, means } = successOf(run);
  let best = -Infinity;
  const bounds = means.map(({ step, value }) => {
    best = Math.max(best, value);
    return step >= from && best - start >= smallestGain ? start + (best - start) / 2 : -Infinity;
  });
  return lastingFall(means, i => bounds[i]);
}

/** Returns the first step, from `from` on, in which one of the rules raises an alarm; null if none does. */
export function firstAlarm({ steps }: MeasuredRun, rules: readonly AlarmRule[], from: number): number | null {
  const raised = rules.flatMap(rule => {
    const column = (key: string): number[] => steps.map(metrics => metrics[key] ?? NaN);
    const values = column(rule.metric);
    const bounds = boundsOver(rule, values, rule.limit === undefined ? undefined : column(rule.limit));
    const { now } = streaksOver(rule, values, bounds);
    return steps.find(({ step }, row) => step >= from && now[row] >= rule.steps)?.step ?? [];
  });
  return raised.length > 0 ? minimum(raised) : null;
}

/** How the alarms of some runs relate to the collapse of these runs. */
export interface AlarmFigures {
  /** Number of runs of collapsing arms, and how many of them lost half of their gain. */
  runs: number;
  collapsed: number;
  /** Share of the collapsed runs with an alarm before half of the gain was lost; NaN without collapsed runs. */
  detected: number;
  /** Steps from the alarm to the loss of half of the gain, for each collapsed run with an alarm; negative: too late. */
  leads: number[];
  /** Number of healthy runs, and the share of them in which an alarm was raised. */
  healthy: number;
  falseAlarms: number;
  /** Runs that never gained 10 points, and how many of them had an alarm; null if runs are divided by arm. */
  ungained: { runs: number; alarms: number } | null;
}

/** A run of those that are expected to collapse, and the step at which half of its gain was lost; null if it was not. */
interface CollapsingRun {
  run: MeasuredRun;
  lost: number | null;
}

/** Runs divided into those that should raise an alarm and those that should not. */
export interface DividedRuns {
  collapsing: CollapsingRun[];
  healthy: MeasuredRun[];
  /** Runs that never gained 10 points; null if runs are divided by arm. */
  ungained: MeasuredRun[] | null;
}

/** Divides runs by their arms. `from` is the first step at which a run can collapse. */
export function byArms(
  runs: readonly MeasuredRun[],
  arms: { collapsing: readonly string[]; healthy: readonly string[] },
  from: number,
): DividedRuns {
  const collapsing = runs.filter(({ arm }) => arms.collapsing.includes(arm));
  return {
    collapsing: collapsing.map(run => ({ run, lost: halfGainLost(run, from) })),
    healthy: runs.filter(({ arm }) => arms.healthy.includes(arm)),
    ungained: null,
  };
}

/** Divides runs by what became of their success from step `from` on: gain lost, gain kept, or never gained 10 points. */
export function byOutcome(runs: readonly MeasuredRun[], from: number): DividedRuns {
  const [collapsing, healthy, ungained]: [CollapsingRun[], MeasuredRun[], MeasuredRun[]] = [[], [], []];
  for (const run of runs) {
    const { start, means } = successOf(run);
    const lost = halfGainLost(run, from);
    if (lost !== null) collapsing.push({ run, lost });
    else (means.some(({ value }) => value - start >= smallestGain) ? healthy : ungained).push(run);
  }
  return { collapsing, healthy, ungained };
}

/** Computes the figures of alarms over divided runs. */
export function alarmFigures(
  { collapsing, healthy, ungained }: DividedRuns,
  rules: readonly AlarmRule[],
  from: number,
): AlarmFigures {
  const collapsed = collapsing.flatMap(({ run, lost }) =>
    lost === null ? [] : [{ lost, alarm: firstAlarm(run, rules, from) }],
  );
  const leads = collapsed.flatMap(({ lost, alarm }) => (alarm === null ? [] : [lost - alarm]));
  const alarmsIn = (runs: readonly MeasuredRun[]): number =>
    runs.filter(run => firstAlarm(run, rules, from) !== null).length;
  return {
    runs: collapsing.length,
    collapsed: collapsed.length,
    detected: leads.filter(lead => lead >= 0).length / collapsed.length,
    leads,
    healthy: healthy.length,
    falseAlarms: alarmsIn(healthy) / healthy.length,
    ungained: ungained && { runs: ungained.length, alarms: alarmsIn(ungained) },
  };
}

/**
 * Returns every second seed in ascending order, from the first on. The runs of these seeds choose thresholds; the runs of
 * the other seeds judge them.
 */
function fitSeedsOf(runs: readonly MeasuredRun[]): Set<number> {
  const seeds = [...new Set(runs.map(({ seed }) => seed))].sort((a, b) => a - b);
  return new Set(seeds.filter((_, i) => i % 2 === 0));
}

/** A threshold of the alarm `prompt_dependence`: share of the best value, and number of diagnoses below it. */
export interface AlarmThreshold {
  share: number;
  steps: number;
}

const candidates: AlarmThreshold[] = [1, 2, 3].flatMap(steps =>
  Array.from({ length: 15 }, (_, i) => ({ share: (20 + 5 * i) / 100, steps })),
);

export interface Calibration extends AlarmThreshold {
  fit: AlarmFigures;
  check: AlarmFigures;
}

/**
 * Chooses the threshold of the alarm `prompt_dependence` on half of the seeds, and judges it on the other half. The best
 * threshold has the largest share of detected collapses minus false alarms; among equals, the longest mean lead, and
 * then the smallest share. Returns null if no run of the first half collapsed, or if none of its runs is healthy.
 */
export function calibratePromptDependence(
  { collapsing, healthy }: Omit<DividedRuns, 'ungained'>,
  from: number,
): Calibration | null {
  const fitSeeds = fitSeedsOf([...collapsing.map(({ run }) => run), ...healthy]);
  const part = (fit: boolean): DividedRuns => ({
    collapsing: collapsing.filter(({ run }) => fitSeeds.has(run.seed) === fit),
    healthy: healthy.filter(({ seed }) => fitSeeds.has(seed) === fit),
    ungained: null,
  });
  const judged = ({ share, steps }: AlarmThreshold, fit: boolean): AlarmFigures => {
    const rule = { ...alarmRules.prompt_dependence, bound: shareOfBest(share), steps };
    return alarmFigures(part(fit), [rule], from);
  };
  let best: { at: AlarmThreshold; fit: AlarmFigures; score: number; lead: number } | null = null;
  for (const at of candidates) {
    const fit = judged(at, true);
    if (fit.collapsed === 0 || fit.healthy === 0) return null;
    const score = fit.detected - fit.falseAlarms;
    const lead = fit.leads.reduce((sum, steps) => sum + steps, 0) / Math.max(1, fit.leads.length);
    if (best === null || score > best.score || (score === best.score && lead > best.lead))
      best = { at, fit, score, lead };
  }
  return best && { ...best.at, fit: best.fit, check: judged(best.at, false) };
}
