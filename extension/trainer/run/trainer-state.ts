// The state of a trainer between steps, without weights and optimizer, and the form in which a checkpoint's manifest
// stores this state. Checkpoints of earlier versions lack newer keys; a missing key gets the value that it has before
// the first step.
import { nothingPlayed, type CurriculumState } from '../../algorithms/curriculum';
import type { ServerState } from '../../engine/engine';
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

/** State between steps, without weights and optimizer; stored in checkpoints. */
export interface TrainerState {
  /** Number of finished steps. */
  step: number;
  /** Counters of the early-stop rules. */
  watch: Watch;
  /** Coefficient of the KL penalty in the reward. */
  klCoefficient: number;
  /** States of the collapse diagnosis and of the alarms. */
  collapse: CollapseState;
  alarms: WatchState;
  /** Success rates and difficulty pools of the tags. */
  curriculum: CurriculumState;
  /** Counters of steps with non-finite numbers. */
  skipped: SkippedSteps;
  /** Seconds that training and validation have taken in all sessions of the run. */
  spent: TimeSpent;
  /**
   * Metrics of the newest step if a stop interrupted this step's validation; a resume then runs the validation again.
   */
  unvalidated?: Record<string, number>;
}

/** The trainer's part of a checkpoint's manifest; step and seeds are stored in other parts. */
export interface SavedState {
  watch?: Watch;
  kl_coef?: number;
  collapse?: CollapseState;
  alarms?: WatchState;
  curriculum?: CurriculumState;
  skipped?: SkippedSteps;
  spent?: TimeSpent;
  /** Environment version of each tag at the time of the checkpoint. */
  environments?: Record<string, string>;
  /** Version of each plug-in at the time of the checkpoint, by path. */
  plugins?: Record<string, string>;
  actor_updates: number;
  critic_updates: number;
  /** The part of the engine's state that a Tinker server stores; absent for the engine on this machine. */
  server?: ServerState['server'];
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
    curriculum: nothingPlayed,
    skipped: nothingSkipped,
    spent: noTimeSpent,
  };
}
