// The state that a trainer keeps between steps, besides weights and optimizer, and its form in a checkpoint's manifest.
// A checkpoint of an earlier version lacks newer keys, which then have the values of the first state.
import type { RunConfig } from '../config/schema';
import { nothingSeen } from '../loop/early-stops';
import type { Watch } from '../loop/early-stops';
import { nothingWatched } from '../diagnostics/alarms';
import type { WatchState } from '../diagnostics/alarms';
import { nothingDiagnosed } from '../diagnostics/collapse-metrics';
import type { CollapseState } from '../diagnostics/collapse-metrics';
import { nothingSkipped } from '../loop/skipped-steps';
import type { SkippedSteps } from '../loop/skipped-steps';
import { noTimeSpent } from '../loop/step-times';
import type { TimeSpent } from '../loop/step-times';

/** State kept between steps besides weights and optimizer; stored in checkpoints. */
export interface TrainerState {
  /** Finished steps. */
  step: number;
  /** Counters of the early-stop rules. */
  watch: Watch;
  /** Coefficient of the KL penalty in the reward. */
  klCoefficient: number;
  /** State of the collapse diagnosis and of the alarms. */
  collapse: CollapseState;
  alarms: WatchState;
  /** Recent steps with non-finite numbers. */
  skipped: SkippedSteps;
  /** The run's time by activity. */
  spent: TimeSpent;
  /**
   * Metrics of the newest step while its validation is missing: the run was stopped during it, and a resume runs it
   * again.
   */
  unvalidated?: Record<string, number>;
}

/** The trainer's part of a checkpoint's manifest, besides step and seeds. */
export interface SavedState {
  watch?: Watch;
  kl_coef?: number;
  collapse?: CollapseState;
  alarms?: WatchState;
  skipped?: SkippedSteps;
  spent?: TimeSpent;
  /** Environment versions by tag that the steps ran. */
  environments?: Record<string, string>;
  actor_updates: number;
  critic_updates: number;
  wall_s: number;
  success: number | null;
  validated: number | null;
  unvalidated?: Record<string, number>;
}

/** The state before the first step. */
export function firstState(config: RunConfig): TrainerState {
  return {
    step: 0,
    watch: nothingSeen,
    klCoefficient: config.algorithm.kl_ctrl.kl_coef,
    collapse: nothingDiagnosed,
    alarms: nothingWatched,
    skipped: nothingSkipped,
    spent: noTimeSpent,
  };
}
