// Times under RAGEN's and verl's keys: seconds of a step (without validation and diagnosis), total seconds of the run,
// and milliseconds per token of each phase. A checkpoint stores the length of the metrics log and is therefore written
// after the metrics line of its step. The time for writing the checkpoint appears in the metrics line of the next step.
import type { Stopwatch } from './stopwatch';

/** Seconds that a run has spent in all its sessions. */
export type TimeSpent = {
  training: number;
  validation: number;
  /** Seconds for writing the checkpoint after the last metrics line; absent if no checkpoint was written. */
  saving?: number;
};

export const noTimeSpent: TimeSpent = { training: 0, validation: 0 };

/** Adds RAGEN's times to the metrics of a finished step and its validation. Also returns the updated totals. */
export function withTimes(
  metrics: Readonly<Record<string, number>>,
  before: TimeSpent,
  runSeconds: number,
): { metrics: Record<string, number>; spent: TimeSpent } {
  const validation = metrics['timing_s/testing'] ?? 0;
  const step = metrics['timing_s/step'] ?? metrics['perf/time_per_step'] ?? 0;
  const training = Math.max(0, step - validation - (metrics['timing_s/collapse_metrics'] ?? 0));
  const spent = { training: before.training + training, validation: before.validation + validation };
  return {
    metrics: {
      ...metrics,
      ...(before.saving !== undefined && { 'timing_s/save_checkpoint': before.saving }),
      'timing_s/train_step': training,
      'timing_s/eval_step': validation,
      'timing_s/train_total': spent.training,
      'timing_s/eval_total': spent.validation,
      'timing_s/total': runSeconds,
    },
    spent,
  };
}

/** Phases whose time verl divides by the number of all tokens in the trained samples. */
const overTrainedTokens = ['ref', 'teacher', 'values', 'adv', 'update_critic', 'update_actor'];

/**
 * Returns the milliseconds per token of each phase that ran: per sampled token for generation, per token of the trained
 * samples for all other phases.
 */
export function timesPerToken(
  clock: Pick<Stopwatch, 'seconds'>,
  tokens: { sampled: number; trained: number },
): Record<string, number> {
  const counts = [['gen', tokens.sampled] as const, ...overTrainedTokens.map(name => [name, tokens.trained] as const)];
  return Object.fromEntries(
    counts.flatMap(([name, count]) => {
      const seconds = clock.seconds(name);
      return seconds > 0 && count > 0 ? [[`timing_per_token_ms/${name}`, (seconds * 1000) / count]] : [];
    }),
  );
}
