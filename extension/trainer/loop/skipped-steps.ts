// Handles steps with non-finite numbers. An optimizer skips an update if the gradient is not finite. If logits in a
// rollout are not finite, the complete step is skipped. In both cases the policy is unchanged. Skips are counted and
// reported. Too many consecutive skipped steps end the run, because a policy that causes so many skips does not
// recover.
import { UserError } from '../../common/user-error';
import type { RunConfig } from '../config/schema';
import { NotFiniteError } from '../../engine/optimizer/not-finite';
import type { Journal } from '../run/journal';

/** Counters of skipped steps, stored in checkpoints. */
export type SkippedSteps = {
  /** Consecutive steps in which at least one optimizer step was skipped. */
  partly: number;
  /**
   * `wholly` is the number of consecutive steps without any change of the weights. `reason` says why the newest of
   * these steps changed nothing.
   */
  wholly: number;
  reason: string;
  /** True if the policy can be sampled; false if the newest step had non-finite logits. */
  sound: boolean;
};

export const nothingSkipped: SkippedSteps = { partly: 0, wholly: 0, reason: '', sound: true };

/** Metric key of a step without any change of the weights; its value is 1. */
const skippedStep = 'train/skipped_step';

type Metrics = Record<string, number>;

/** Runs a step and returns its metrics. If the policy's logits are not finite, the metrics mark the step as skipped. */
export async function stepOrSkip(
  work: () => Promise<Metrics>,
): Promise<{ metrics: Metrics; failure: NotFiniteError | null }> {
  const started = performance.now();
  try {
    return { metrics: await work(), failure: null };
  } catch (error) {
    if (!(error instanceof NotFiniteError)) throw error;
    const seconds = (performance.now() - started) / 1000;
    return {
      metrics: { [skippedStep]: 1, 'perf/time_per_step': seconds, 'perf/throughput': 0 },
      failure: error,
    };
  }
}

/**
 * Returns the counters after a step. Of consecutive steps with skips, only the first is reported as an event. If a step
 * changed no weights, the skip metric is added to its metrics.
 */
export function afterSkips(
  before: SkippedSteps,
  { metrics, failure }: { metrics: Metrics; failure: NotFiniteError | null },
  journal: Pick<Journal, 'event'>,
  step: number,
): SkippedSteps {
  const left = metrics['actor/skipped_updates'] ?? 0;
  const critic = metrics['critic/skipped_updates'] ?? 0;
  const all = failure !== null || (left > 0 && left === metrics['train/num_mini_batches']);
  if (left + critic === 0 && !all) return nothingSkipped;
  const who = left === 0 ? 'critic' : 'policy';
  const reason =
    failure?.message ??
    `training: ${left === 0 ? critic : left} optimizer steps of the ${who} in step ${step} were skipped because their gradient was not finite: lower actor_rollout_ref.actor.optim.lr, or set workbench.precision=float32 if the precision is float16`;
  if (all) metrics[skippedStep] = 1;
  if (before.partly === 0 || (all && before.wholly === 0))
    journal.event('warning', all ? `step ${step} changed no weights: ${reason}` : reason, { step });
  return { partly: before.partly + 1, wholly: all ? before.wholly + 1 : 0, reason, sound: failure === null };
}

/** Throws a UserError if more than `max_skipped_steps` consecutive steps changed nothing. */
export function refuseSkips({ wholly, reason }: SkippedSteps, { workbench }: Pick<RunConfig, 'workbench'>): void {
  if (wholly <= workbench.max_skipped_steps) return;
  throw new UserError(
    `${reason} (${wholly} consecutive steps changed no weights; workbench.max_skipped_steps is ${workbench.max_skipped_steps})`,
  );
}
