// RAGEN's three rules that end a run early: the filter keeps no group, the scores within the groups become almost
// equal, or almost no validation episode succeeds. The rules' counters are part of the trainer's state, so a resumed
// run stops at the same step as an uninterrupted run.
import type { RunConfig } from '../config/schema';

/** The counters of the rules, stored in checkpoints. */
export type Watch = {
  /** Number of consecutive steps in which the filter kept no group. */
  emptySteps: number;
  /** In-group std of the score in each of the first 10 steps with training. */
  firstStds: number[];
  /** In-group std of the score in each of the newest 10 steps with training, not counting the steps of `firstStds`. */
  lastStds: number[];
  /** For each metric key, the number of consecutive validations with a success rate below 1 %. */
  failedValidations: Record<string, number>;
};

export interface EarlyStop {
  /** RAGEN's name of the rule, as in the metric `early_stopped/<type>`. */
  type: 'empty_filtered_steps' | 'reward_variance_collapse' | 'low_validation_success';
  sentence: string;
}

/**
 * The baseline is the mean std of the first `steps` steps. The scores have collapsed if the std is below `share` times
 * the baseline in each of the newest `steps` steps.
 */
const collapse = { steps: 10, share: 0.1 };
/**
 * `validations`: number of consecutive failed validations that end a run. `success`: success rate below which a
 * validation is regarded as failed.
 */
const failure = { validations: 5, success: 0.01 };

export const nothingSeen: Watch = { emptySteps: 0, firstStds: [], lastStds: [], failedValidations: {} };

/** Returns the counters after a step with these metrics. A step without training adds no std. */
export function afterStep(watch: Watch, metrics: Readonly<Record<string, number>>): Watch {
  if (metrics['rollout/empty_after_filter'] === 1) return { ...watch, emptySteps: watch.emptySteps + 1 };
  const std = metrics['rollout/in_group_reward_std'] as number | undefined;
  if (std === undefined) return watch; // the step was skipped because of non-finite logits
  if (watch.firstStds.length < collapse.steps) return { ...watch, emptySteps: 0, firstStds: [...watch.firstStds, std] };
  return { ...watch, emptySteps: 0, lastStds: [...watch.lastStds, std].slice(-collapse.steps) };
}

/** Returns the counters after a validation. Keys other than success rates are ignored. */
export function afterValidation(watch: Watch, metrics: Readonly<Record<string, number>>): Watch {
  const successes = Object.entries(metrics).filter(([key]) => /^val-env\/[^/]+\/success$/.test(key));
  const failedValidations = Object.fromEntries(
    successes.map(([key, success]) => [key, success < failure.success ? (watch.failedValidations[key] ?? 0) + 1 : 0]),
  );
  return { ...watch, failedValidations };
}

type Rules = { workbench: Pick<RunConfig['workbench'], 'early_stops' | 'trajectory_filter'>; emptyStopSteps: number };

/** Returns the parts of a configuration that control the rules. */
export const stopRules = ({ workbench, actor_rollout_ref }: RunConfig): Rules => ({
  workbench,
  emptyStopSteps: actor_rollout_ref.rollout.rollout_filter_empty_stop_steps,
});

/** Returns the rule that ends the run now, with a sentence that states the cause; null if no rule applies. */
export function earlyStop(watch: Watch, { workbench, emptyStopSteps }: Rules): EarlyStop | null {
  const { emptySteps, firstStds, lastStds, failedValidations } = watch;
  if (emptyStopSteps > 0 && emptySteps >= emptyStopSteps)
    return {
      type: 'empty_filtered_steps',
      sentence:
        workbench.trajectory_filter.strategy === 'none'
          ? `the rollout filter kept no group in ${emptySteps} steps in a row (rollout_filter_empty_stop_steps): all episodes of each group have the same score`
          : `the filters kept no episode in ${emptySteps} steps in a row (rollout_filter_empty_stop_steps): all episodes of each group have the same score, or none of the kept groups succeeds (workbench.trajectory_filter)`,
    };
  const baseline = firstStds.reduce((sum, std) => sum + std, 0) / Math.max(firstStds.length, 1);
  const bound = collapse.share * baseline;
  if (
    workbench.early_stops.includes('reward_variance_collapse') &&
    lastStds.length === collapse.steps &&
    lastStds.every(std => std < bound)
  )
    return {
      type: 'reward_variance_collapse',
      sentence: `the in-group std of the score was below ${bound.toPrecision(3)} in each of the last ${collapse.steps} steps; its mean over the first ${collapse.steps} steps was ${baseline.toPrecision(3)} (workbench.early_stops)`,
    };
  const failed = Object.entries(failedValidations).find(([, times]) => times >= failure.validations);
  if (workbench.early_stops.includes('low_validation_success') && failed)
    return {
      type: 'low_validation_success',
      sentence: `${failed[0]} was under 1 % in ${failed[1]} validations in a row (workbench.early_stops)`,
    };
  return null;
}
