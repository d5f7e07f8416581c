// The KL penalty in the reward (`algorithm.use_kl_in_reward`): coefficient × KL is subtracted from the token rewards.
// algorithms/kl-controller.ts adapts the coefficient to the observed KL. The coefficient is part of the trainer's state
// and stored in checkpoints.
import { klInReward } from '../../algorithms/kl';
import { nextKlCoefficient } from '../../algorithms/kl-controller';
import type { RunConfig } from '../config/schema';
import type { BatchSample } from './training-batch';
import type { TrainerState } from '../run/trainer-state';

/**
 * Returns the rewards minus the KL penalty. Adds the mean KL and the coefficient to `metrics`, then updates the
 * coefficient in `state`.
 */
export function penalisedRewards(
  rows: Record<'plain' | 'old' | 'reference', readonly Float32Array[]> & {
    samples: readonly BatchSample[];
  },
  state: TrainerState,
  { algorithm }: RunConfig,
  metrics: Record<string, number>,
): Float32Array[] {
  const beta = state.klCoefficient;
  const found = rows.samples.map(({ mask }, i) =>
    klInReward(
      {
        rewards: rows.plain[i],
        logprobs: rows.old[i],
        ref_logprobs: rows.reference[i],
        mask,
      },
      algorithm.kl_penalty,
      beta,
    ),
  );
  const observed = found.reduce((total, { meanKl }) => total + meanKl, 0) / found.length;
  state.klCoefficient = nextKlCoefficient(algorithm.kl_ctrl, beta, observed, found.length);
  Object.assign(metrics, {
    'actor/reward_kl_penalty': observed,
    'actor/reward_kl_penalty_coeff': beta,
  });
  return found.map(({ rewards }) => rewards);
}
