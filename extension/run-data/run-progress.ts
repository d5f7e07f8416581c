// Determines the progress of a run and whether it has ended. Progress is counted in episodes for an evaluation, and in
// steps for all other runs.
import type { RunState, RunStatus } from './run-status-file';

export interface RunProgress {
  unit: 'step' | 'episode';
  done: number;
  /** Total number of steps or episodes; 0 until it is known. */
  of: number;
}

/** Whether a run is an evaluation, which has no steps and no checkpoints. */
export const isEvaluation = ({ episodes }: Pick<RunStatus, 'episodes'>): boolean => episodes !== undefined;

export const progressOf = ({ step, total_steps, episodes }: RunStatus): RunProgress =>
  episodes ? { unit: 'episode', ...episodes } : { unit: 'step', done: step, of: total_steps };

/** Whether a run in this state has not ended. The other states are `finished`, `failed` and `stopped`. */
export const isUnended = (state: RunState): boolean => ['starting', 'running', 'paused', 'stopping'].includes(state);

/** Whether a run was interrupted: its trainer has ended, but its state says that the run has not ended. */
export const isInterrupted = ({ status, live }: { status: Pick<RunStatus, 'state'>; live: boolean }): boolean =>
  !live && isUnended(status.state);
