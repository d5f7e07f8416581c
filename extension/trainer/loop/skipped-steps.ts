// Steps with non-finite numbers. The optimizers skip an update whose gradient is not finite; a rollout with non-finite
// logits ends its whole step. Neither changes the policy. Both are counted and reported, and too many in a row end the
// run: such a policy does not recover, and the checkpoints on disk are from before.
import { UserError } from '../../common/user-error';
import type { RunConfig } from '../config/schema';
import { NotFiniteError } from '../../engine/optimizer/not-finite';
import type { Journal } from '../run/journal';

/** The state kept between steps. */
export type SkippedSteps = {
  /** Consecutive steps in which at least one optimizer step was skipped. */
  partly: number;
  /** Consecutive steps that changed nothing, and why the newest one did not. */
  wholly: number;
  reason: string;
  /** Whether the policy can still be sampled: its gradient was not finite, but its logits were. */
  sound: boolean;
};

export const nothingSkipped: SkippedSteps = { partly: 0, wholly: 0, reason: '', sound: true };

/** Metric key of a step that changed nothing; its value is 1. */
const skippedStep = 'train/skipped_step';

type Metrics = Record<string, number>;

/** Runs a step. Non-finite logits of the policy end it, with metrics that mark it as skipped. */
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
 * Returns the state after a step, and reports the first skip of a series as an event. Marks the metrics of a step that
 * changed nothing.
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
    `training: ${left === 0 ? critic : left} optimizer steps of the ${who} in step ${step} were skipped because their gradient was not finite: lower actor_rollout_ref.actor.optim.lr, or set workbench.precision=float32 if it is float16`;
  if (all) metrics[skippedStep] = 1;
  if (before.partly === 0 || (all && before.wholly === 0))
    journal.event('warning', all ? `step ${step} changed nothing: ${reason}` : reason, { step });
  return { partly: before.partly + 1, wholly: all ? before.wholly + 1 : 0, reason, sound: failure === null };
}

/**
 * Whether a checkpoint is due after a step: every `save_freq` steps. In a series of steps that changed nothing only
 * after the first one, and only if the policy can still be sampled, so that the kept checkpoints are from before the
 * series.
 */
export function checkpointDue(step: number, saveFreq: number, { wholly, sound }: SkippedSteps): boolean {
  if (saveFreq <= 0) return false;
  return wholly > 0 ? wholly === 1 && sound : step % saveFreq === 0;
}

/** Ends a run in which too many consecutive steps changed nothing. @throws UserError */
export function refuseSkips({ wholly, reason }: SkippedSteps, { workbench }: Pick<RunConfig, 'workbench'>): void {
  if (wholly <= workbench.max_skipped_steps) return;
  throw new UserError(
    `${reason} (${wholly} steps in a row changed nothing, workbench.max_skipped_steps is ${workbench.max_skipped_steps}; the checkpoints are from before them)`,
  );
}
