// Decides after which steps a training writes a checkpoint. run/training-checkpoints.ts writes these checkpoints, and
// one more at the end of the training.
import type { SkippedSteps } from './skipped-steps';

/**
 * Whether a checkpoint is due after a step. Normally, a checkpoint is due every `save_freq` steps. If consecutive steps
 * change no weights, only the first of them writes a checkpoint, and only if the policy's logits are finite. More
 * checkpoints of the unchanged policy would displace all earlier checkpoints.
 */
export function checkpointDue(step: number, saveFreq: number, { wholly, sound }: SkippedSteps): boolean {
  if (saveFreq <= 0) return false;
  return wholly > 0 ? wholly === 1 && sound : step % saveFreq === 0;
}
