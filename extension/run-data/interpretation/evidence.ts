// The data from which a run is interpreted. The diagnoses in this data belong to one family (one of `families` in
// run-series.ts). The data is collected once per run and truncated at the selected step.
import type { CollapseSettings, FilterSettings, PolicySettings } from '../collapse-settings';
import type { PathPoint, StepValue } from '../collapse-path';
import type { RunEvent, SettingChange } from '../run-events';
import { filterAt } from '../collapse-settings';
import { missingFamily, type Missing } from './missing-family';
import { pathOf, reached, type FamilyName, type RunSeries } from './run-series';

/** A change of a configuration value during training. The new value is in effect from step `step` + 1. */
export type ChangedSetting = SettingChange & { step: number };

/** Settings and checkpoints at the selected step; null if unknown. */
export interface Circumstances {
  filter: FilterSettings | null;
  policy: PolicySettings | null;
  /** Ordered by step. */
  changes: readonly ChangedSetting[];
  /** Steps whose checkpoints still exist, ascending. */
  checkpoints: readonly number[] | null;
  /** Why the family may have no diagnosis, and the override that enables the diagnosis if the run has it switched off. */
  missing: Missing | null;
}

/** A run's settings for the diagnostics, its events, and the steps of its checkpoints. */
export interface RunCircumstances {
  readonly settings: CollapseSettings;
  readonly events: readonly RunEvent[];
  readonly checkpoints: readonly number[];
}

/** All data from which a run is interpreted, up to the selected step. */
export interface Evidence extends Circumstances {
  path: readonly PathPoint[];
  rewardStd: readonly StepValue[];
  tokenEntropy: readonly StepValue[];
  gradientNorm: readonly StepValue[];
  invalidAnswers: readonly StepValue[];
  /** Share of successful training episodes, mean over tags. */
  success: readonly StepValue[];
  /** Share of successful validation episodes, mean over tags. */
  validation: readonly StepValue[];
  /** Share of turns with a thought (`collapse/valid_thinking_rate`). */
  thinking: readonly StepValue[];
}

const nothingKnown: Circumstances = { filter: null, policy: null, changes: [], checkpoints: null, missing: null };

/**
 * Returns the circumstances after a step: the settings in effect at this step, all changes of settings up to this step,
 * the checkpoints that were written up to this step and still exist, and why a diagnosis of `family` may be missing.
 */
export function circumstancesAt(
  { settings, events, checkpoints }: RunCircumstances,
  step: number,
  family: FamilyName,
): Circumstances {
  const changes = events.flatMap(event => (event.step <= step ? changeOf(event) : []));
  return {
    filter: filterAt(settings.filter, events, step + 1),
    policy: settings.policy && policyAfter(settings.policy, changes),
    changes,
    checkpoints: checkpoints.filter(each => each <= step),
    missing: missingFamily(settings, family),
  };
}

function changeOf({ kind, step, data }: RunEvent): ChangedSetting[] {
  const { key, from, to } = data ?? {};
  if (kind !== 'setting' || typeof key !== 'string' || typeof from !== 'number' || typeof to !== 'number') return [];
  return [{ key, from, to, step }];
}

/** Maps configuration keys of loss weights to the fields of `PolicySettings`. */
const weights = {
  'actor_rollout_ref.actor.kl_loss_coef': 'kl_loss_coef',
  'algorithm.kl_ctrl.kl_coef': 'kl_coef',
  'actor_rollout_ref.actor.entropy_coeff': 'entropy_coeff',
} as const satisfies Record<string, keyof PolicySettings>;

const policyAfter = (policy: PolicySettings, changes: readonly ChangedSetting[]): PolicySettings =>
  changes.reduce(
    (now, { key, to }) => (Object.hasOwn(weights, key) ? { ...now, [weights[key as keyof typeof weights]]: to } : now),
    policy,
  );

/**
 * Returns the evidence of all steps of a run.
 * @param path the diagnoses of `family` as a path through the plane; by default, computed from `series`
 */
export function evidenceOf(
  series: RunSeries,
  family: string,
  path: readonly PathPoint[] = pathOf(series, family),
): Evidence {
  return {
    path,
    ...nothingKnown,
    rewardStd: series.points('rollout/in_group_reward_std'),
    tokenEntropy: series.points('actor/entropy'),
    gradientNorm: series.points('actor/grad_norm'),
    invalidAnswers: series.points('rollout/invalid_answer_rate'),
    success: meanOver(series, /^train\/[^/]+\/success$/),
    validation: meanOver(series, /^val-env\/[^/]+\/success$/),
    thinking: series.points('collapse/valid_thinking_rate'),
  };
}

/** Returns the evidence truncated at `step`; `circumstances` are the settings and checkpoints at this step. */
export function evidenceUpTo(all: Evidence, step: number, circumstances: Circumstances): Evidence {
  const cut = <T extends { step: number }>(points: readonly T[]): readonly T[] =>
    points.slice(0, reached(points, step));
  return {
    ...circumstances,
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

/**
 * Returns the mean over all columns whose key matches `pattern`, at each step for which at least one column has a
 * value.
 */
function meanOver(series: RunSeries, pattern: RegExp): StepValue[] {
  const columns = series.keys.filter(key => pattern.test(key)).map(key => series.column(key));
  return series.steps.flatMap((step, row) => {
    const values = columns.map(column => column[row]).filter(Number.isFinite);
    return values.length > 0 ? [{ step, value: values.reduce((sum, x) => sum + x, 0) / values.length }] : [];
  });
}
