// Resolves `algorithm.rollout_correction.rollout_is: auto`. With 8-bit rollouts or an 8-bit base, the sampling policy
// differs slightly from the trained policy, so `auto` selects truncated importance sampling per token
// (algorithms/rollout-correction.ts); otherwise `auto` selects no correction.
import type { RolloutCorrection } from '../../algorithms/rollout-correction';
import type { RunConfig } from './schema';

type Config = Pick<RunConfig, 'algorithm' | 'workbench'>;

/** Returns whether the sampler and the training graph use different base weights. */
const differ = ({ workbench }: Config): boolean =>
  workbench.rollout_quantization !== 'none' || workbench.base_quantization !== 'none';

/** Returns the rollout correction of a run, with `auto` resolved. */
export function rolloutCorrection(config: Config): RolloutCorrection {
  const { bypass_mode, rollout_is, rollout_is_threshold } = config.algorithm.rollout_correction;
  const automatic = differ(config) && !bypass_mode ? 'token' : null;
  return { rollout_is: rollout_is === 'auto' ? automatic : rollout_is, rollout_is_threshold };
}

/**
 * Returns a note if `auto` selects a correction for 8-bit rollouts or an 8-bit base, or if `null` disables this
 * correction.
 */
export function correctionNotes(config: Config & Pick<RunConfig, 'trainer'>): string[] {
  const { bypass_mode, rollout_is, rollout_is_threshold } = config.algorithm.rollout_correction;
  if (!differ(config) || config.trainer.val_only || bypass_mode) return [];
  const key = 'config: algorithm.rollout_correction.rollout_is';
  if (rollout_is === 'auto')
    return [
      `${key} is auto, which weights each token's loss by its importance ratio (at most ${rollout_is_threshold}) to correct for the 8-bit base: set this key to null to turn the correction off`,
    ];
  return rollout_is === null
    ? [
        `${key} is null, so nothing corrects for the errors of the 8-bit base: set this key to auto to weight token losses by importance ratios`,
      ]
    : [];
}
