// How far a run is, by what it counts: a training its steps, an evaluation, which takes none, its episodes.
import type { RunStatus } from './run-folder';

export interface RunProgress {
  unit: 'step' | 'episode';
  done: number;
  /** 0 until it is known. */
  of: number;
}

/** Whether a run is an evaluation, which takes no steps and makes no checkpoints. */
export const isEvaluation = ({ episodes }: Pick<RunStatus, 'episodes'>): boolean => episodes !== undefined;

/** Where a run stands of all that it is to do. */
export const progressOf = ({ step, total_steps, episodes }: RunStatus): RunProgress =>
  episodes ? { unit: 'episode', ...episodes } : { unit: 'step', done: step, of: total_steps };
