// Why a run has no diagnosis of a family, and the configuration override that makes future runs record one.
import type { CollapseSettings } from '../collapse-settings';
import type { FamilyName, RunSeries } from './run-series';

export interface Missing {
  text: string;
  /** The configuration override that makes future runs record the data; undefined if no override is needed. */
  override?: string;
  /** Whether the stored rollouts of the run can be scored under a model (`ragen diagnose`). */
  diagnose?: true;
}

const familyKeys: Record<FamilyName, [on: (settings: CollapseSettings) => boolean, override: string]> = {
  collapse_first_turn_sample: [s => s.first_turn, 'collapse_detection.first_turn_enabled=true'],
  collapse_trajectory_sample: [s => s.multi_turn, 'collapse_detection.multi_turn_enabled=true'],
  collapse_turn_sample: [s => s.turn_uniform, 'workbench.collapse_turn_uniform=true'],
};

/**
 * Whether the stored responses of a run have thoughts, by the metrics of their texts; null if no texts are stored.
 */
export function storedThoughts(series: RunSeries): boolean | null {
  const has = (key: string): boolean => series.column(key).some(Number.isFinite);
  return has('thoughts/distinct_1') ? true : has('rollout/invalid_answer_rate') ? false : null;
}

/**
 * Explains why no matrix of a family exists up to the selected step. `thoughts` is used for runs of other trainers
 * (`storedThoughts`).
 */
export function missingFamily(
  settings: CollapseSettings,
  family: FamilyName,
  thoughts: boolean | null = true,
): Missing {
  const [isOn, override] = familyKeys[family];
  if (settings.trainer !== null) return missingInAttached(settings.trainer, family, thoughts);
  if (settings.context_window_mode !== 'full')
    return {
      text: `A run with agent_proxy.context_window_mode ${settings.context_window_mode} cannot be diagnosed, because the diagnosis needs the complete chat. To enable the diagnosis in the next run, set`,
      override: 'agent_proxy.context_window_mode=full',
    };
  if (!isOn(settings))
    return { text: 'This run does not diagnose these turns. To enable the diagnosis in the next run, set', override };
  return {
    text: `No diagnosis up to this step: the run makes one at step 1 and at every ${settings.compute_freq}${ordinal(settings.compute_freq)} step.`,
  };
}

const ordinal = (n: number): string => {
  const tens = n % 100;
  if (tens >= 11 && tens <= 13) return 'th';
  return { 1: 'st', 2: 'nd', 3: 'rd' }[n % 10] ?? 'th';
};

function missingInAttached(trainer: string, family: FamilyName, thoughts: boolean | null): Missing {
  const none = `No diagnosis up to this step: ${trainer} does not measure how much the reasoning depends on its prompt`;
  if (thoughts === null) return { text: `${none}, and no texts of training rollouts are stored.` };
  if (!thoughts) return { text: 'The stored responses have no thoughts, so there is no reasoning to diagnose.' };
  if (family === 'collapse_turn_sample')
    return { text: 'Stored rollouts are diagnosed by first turns and by trajectories: choose one of them.' };
  return { text: `${none}. A model that you name can score the stored rollouts.`, diagnose: true };
}
