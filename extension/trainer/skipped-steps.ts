// Steps whose numbers are not finite. An optimizer step with such a gradient is left out by the optimizers themselves; a rollout whose logits
// are no numbers ends its whole step. Neither changes the policy. Both are counted and told, and too many in a row end the run, since a policy
// that gives no numbers will not mend itself: what is on disk by then is from before.
import { UserError } from '../protocol/user-error';
import type { RunConfig } from './config/schema';
import { NotFiniteError } from './engine/not-finite';
import type { Journal } from './journal';

/** What is remembered between steps. */
export type SkippedSteps = {
  /** Steps in a row in which an optimizer step was left out. */
  partly: number;
  /** Steps in a row that changed nothing, and why the newest did not. */
  wholly: number;
  reason: string;
  /** Whether the policy can still play: its gradient was at fault, not its logits. */
  sound: boolean;
};

export const nothingSkipped: SkippedSteps = { partly: 0, wholly: 0, reason: '', sound: true };

/** Key of the metrics of a step that changed nothing; 1. */
export const skippedStep = 'train/skipped_step';

type Metrics = Record<string, number>;

/** Does a step. Where the policy's logits are no numbers the step is over: its metrics say so. */
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

/** What is known after a step; the first of a row of skips becomes an event. Adds to the metrics of a step that changed nothing. */
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
    `training: ${left === 0 ? critic : left} optimizer steps of the ${who} in step ${step} were left out, because their gradient was not finite: lower actor_rollout_ref.actor.optim.lr, or take workbench.precision=float32 where it is not`;
  if (all) metrics[skippedStep] = 1;
  if (before.partly === 0 || (all && before.wholly === 0))
    journal.event('warning', all ? `step ${step} changed nothing: ${reason}` : reason, { step });
  return { partly: before.partly + 1, wholly: all ? before.wholly + 1 : 0, reason, sound: failure === null };
}

/**
 * Whether a step's end is the time for a checkpoint: each `save_freq` steps; in a row of steps that changed nothing at the first alone, and only
 * while the policy can still play, so that what is kept is from before.
 */
export function checkpointDue(step: number, saveFreq: number, { wholly, sound }: SkippedSteps): boolean {
  if (saveFreq <= 0) return false;
  return wholly > 0 ? wholly === 1 && sound : step % saveFreq === 0;
}

/** The end of a run in which too many steps in a row changed nothing. @throws UserError */
export function refuseSkips({ wholly, reason }: SkippedSteps, { workbench }: Pick<RunConfig, 'workbench'>): void {
  if (wholly <= workbench.max_skipped_steps) return;
  throw new UserError(
    `${reason} (${wholly} steps in a row changed nothing, workbench.max_skipped_steps is ${workbench.max_skipped_steps}; the checkpoints are from before them)`,
  );
}
