// Resolves `algorithm.rollout_correction.rollout_is: auto`. The sampling policy differs from the trained policy in
// three cases: rollouts use 8-bit weights, the base has 8-bit weights, or rollouts are sampled with older weights
// (workbench.max_staleness). In these cases `auto` selects truncated importance sampling per token
// (algorithms/rollout-correction.ts); otherwise `auto` selects no correction.
import type { RolloutCorrection } from '../../algorithms/rollout-correction';
import type { RunConfig } from './schema';

type Config = Pick<RunConfig, 'algorithm' | 'workbench'>;

/**
 * Returns phrases for messages that say why the sampler differs from the trained policy; null if the two differ only by
 * rounding.
 */
function difference({ workbench }: Config): { is: string; cause: string } | null {
  if (workbench.rollout_quantization !== 'none' || workbench.base_quantization !== 'none')
    return { is: 'correct for the 8-bit base', cause: 'errors of the 8-bit base' };
  if (workbench.max_staleness > 0)
    return {
      is: 'correct for rollouts by older weights (workbench.max_staleness)',
      cause: 'older weights that sample the rollouts (workbench.max_staleness)',
    };
  return null;
}

/** Returns the rollout correction of a run, with `auto` resolved. */
export function rolloutCorrection(config: Config): RolloutCorrection {
  const { bypass_mode, rollout_is, rollout_is_threshold } = config.algorithm.rollout_correction;
  const automatic = difference(config) && !bypass_mode ? 'token' : null;
  return { rollout_is: rollout_is === 'auto' ? automatic : rollout_is, rollout_is_threshold };
}

/**
 * Returns a note if the sampler differs from the trained policy and `rollout_is` is `auto` or `null`. The difference is
 * corrected with `auto`, and left uncorrected with `null`.
 */
export function correctionNotes(config: Config & Pick<RunConfig, 'trainer'>): string[] {
  const { bypass_mode, rollout_is, rollout_is_threshold } = config.algorithm.rollout_correction;
  const differs = difference(config);
  if (!differs || config.trainer.val_only || bypass_mode) return [];
  const key = 'config: algorithm.rollout_correction.rollout_is';
  if (rollout_is === 'auto')
    return [
      `${key} is auto, which weights each token's loss by its importance ratio (at most ${rollout_is_threshold}) to ${differs.is}: set this key to null to turn the correction off`,
    ];
  return rollout_is === null
    ? [
        `${key} is null, so nothing corrects for the ${differs.cause}: set this key to auto to weight token losses by importance ratios`,
      ]
    : [];
}
