// What `algorithm.rollout_correction.rollout_is: auto` comes to: 8-bit products draw episodes from a policy that is not quite the one that is
// trained, which truncated importance sampling by token makes up for (algorithms/rollout-correction.ts); others need no correction.
import type { RolloutCorrection } from '../algorithms/rollout-correction';
import type { RunConfig } from './schema';

type Config = Pick<RunConfig, 'algorithm' | 'workbench'>;

/** Whether sampler and training graph hold the base differently. */
const differ = ({ workbench }: Config): boolean =>
  workbench.rollout_quantization !== 'none' || workbench.base_quantization !== 'none';

/** The correction of a run. */
export function rolloutCorrection(config: Config): RolloutCorrection {
  const { bypass_mode, rollout_is, rollout_is_threshold } = config.algorithm.rollout_correction;
  const automatic = differ(config) && !bypass_mode ? 'token' : null;
  return { rollout_is: rollout_is === 'auto' ? automatic : rollout_is, rollout_is_threshold };
}

/** One sentence where 8-bit rollouts are corrected without having been asked for, or are not. */
export function correctionNotes(config: Config & Pick<RunConfig, 'trainer'>): string[] {
  const { bypass_mode, rollout_is, rollout_is_threshold } = config.algorithm.rollout_correction;
  if (!differ(config) || config.trainer.val_only || bypass_mode) return [];
  const key = 'config: algorithm.rollout_correction.rollout_is';
  if (rollout_is === 'auto')
    return [
      `${key} is auto, which weighs each sampled token's loss by at most ${rollout_is_threshold} to correct for the 8-bit base: set it to null to leave that out`,
    ];
  return rollout_is === null
    ? [`${key} is null, so that nothing corrects for the 8-bit base: set it to auto to weigh each sampled token's loss`]
    : [];
}
