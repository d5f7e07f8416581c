// Sums that the update graph returns, added over the passes of a mini-batch. The loss metrics, whose names are RAGEN's
// keys, are computed from these sums. Sums over tokens do not depend on how samples are packed into passes.
// trainer/loop/optimizer-steps.ts adds the prefix of a key, such as actor/ in actor/pg_loss. trainer/loop/train.ts
// assembles the metrics line of a step.
import type { PolicyLossOptions, UpdateMetrics } from '../engine/loss-options';
import { updateSums } from './graphs/policy-loss-graph';

/**
 * Sums over trained tokens: the outputs of the update graph, and the number of tokens. Sums of losses are weighted with
 * each token's weight in the mini-batch loss.
 */
export type LossSums = Record<(typeof updateSums)[number] | 'tokens', number>;

export const noSums: Readonly<LossSums> = {
  ...(Object.fromEntries(updateSums.map(name => [name, 0])) as Record<(typeof updateSums)[number], number>),
  tokens: 0,
};

/** Returns the loss metrics under RAGEN's keys. */
export function lossMetrics(sums: Readonly<LossSums>, loss: PolicyLossOptions): UpdateMetrics {
  const perToken = (name: (typeof updateSums)[number]): number => sums[name] / Math.max(sums.tokens, 1);
  return {
    pg_loss: sums.pg_loss,
    entropy_loss: sums.entropy_loss,
    ...(loss.use_kl_loss && { kl_loss: sums.kl_loss, kl_coef: loss.kl_loss_coef }),
    entropy: perToken('entropy'),
    pg_clipfrac: perToken('clipped'),
    pg_clipfrac_lower: perToken('clipped_lower'),
    ppo_kl: perToken('minus_log_ratio'),
  };
}
