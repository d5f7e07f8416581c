// When a checkpoint of a training is due. run/training-checkpoints.ts writes it, and also writes one at the end.
import type { SkippedSteps } from './skipped-steps';

/**
 * Whether a checkpoint is due after a step: every `save_freq` steps. Of consecutive steps without any change, only the
 * first writes a checkpoint, and only if the policy can be sampled. Further checkpoints of the unchanged policy would
 * replace all earlier checkpoints.
 */
export function checkpointDue(step: number, saveFreq: number, { wholly, sound }: SkippedSteps): boolean {
  if (saveFreq <= 0) return false;
  return wholly > 0 ? wholly === 1 && sound : step % saveFreq === 0;
}
