// The times of a step under RAGEN's and verl's keys: what a step took without validation and diagnosis, sums over the run, and what a
// token took in each phase. A checkpoint is written behind its step's line of metrics, whose length it holds: its time stands in the next line.
import type { Stopwatch } from './stopwatch';

/** Seconds that a run has spent, over all of its sittings. */
export type TimeSpent = {
  training: number;
  validation: number;
  /** The checkpoint that was written since the last line of metrics, where there was one. */
  saving?: number;
};

export const noTimeSpent: TimeSpent = { training: 0, validation: 0 };

/** The metrics of a step that is over, its validation included, with RAGEN's sums; and what was spent by then. */
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

/** Phases that go over all tokens of the trained samples, as verl counts them. */
const overTrainedTokens = ['ref', 'values', 'adv', 'update_critic', 'update_actor'];

/** Milliseconds a token of each phase that ran: of generation a sampled token, of the others a token of the trained samples. */
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
