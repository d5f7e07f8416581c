// What a reading is made from: the run's series of one family of pairs, gathered once and cut at each step that is looked at.
import type { FilterSettings, RegimeThresholds } from '../../extension/protocol/collapse-page';
import type { Evidence } from './reading';
import { pathOf, reached, type PathPoint, type RunSeries, type StepValue } from './run-series';

/** All of a run's evidence; `path` is the family's, where it was computed already. */
export function evidenceOf(
  series: RunSeries,
  family: string,
  thresholds: RegimeThresholds | null,
  path: readonly PathPoint[] = pathOf(series, family),
): Evidence {
  return {
    path,
    thresholds,
    filter: null,
    rewardStd: series.points('rollout/in_group_reward_std'),
    tokenEntropy: series.points('actor/entropy'),
    gradientNorm: series.points('actor/grad_norm'),
    invalidAnswers: series.points('rollout/invalid_answer_rate'),
    success: meanOver(series, /^train\/[^/]+\/success$/),
    validation: meanOver(series, /^val-env\/[^/]+\/success$/),
    thinking: series.points('collapse/valid_thinking_rate'),
  };
}

/** The evidence up to a step, with the filter that is then in effect. */
export function evidenceUpTo(all: Evidence, step: number, filter: FilterSettings | null): Evidence {
  const cut = <T extends { step: number }>(points: readonly T[]): readonly T[] =>
    points.slice(0, reached(points, step));
  return {
    thresholds: all.thresholds,
    filter,
    path: cut(all.path),
    rewardStd: cut(all.rewardStd),
    tokenEntropy: cut(all.tokenEntropy),
    gradientNorm: cut(all.gradientNorm),
    invalidAnswers: cut(all.invalidAnswers),
    success: cut(all.success),
    validation: cut(all.validation),
    thinking: cut(all.thinking),
  };
}

/** Mean over the tags whose key matches, at each step where one has a value. */
function meanOver(series: RunSeries, pattern: RegExp): StepValue[] {
  const columns = series.keys.filter(key => pattern.test(key)).map(key => series.column(key));
  return series.steps.flatMap((step, row) => {
    const values = columns.map(column => column[row]).filter(Number.isFinite);
    return values.length > 0 ? [{ step, value: values.reduce((sum, x) => sum + x, 0) / values.length }] : [];
  });
}
