// SAPO (Gao et al., 2025): a smooth gate in place of PPO's clip. The gate's slope is largest at a ratio of 1 and falls
// smoothly on both sides, so no token loses its gradient at a bound. Loss: −4/τ · σ(τ·(ρ − 1)) · A. `ragen algo` evaluates
// this file; training uses graph operations (models/graphs/policy-loss-graph.ts). A test compares the two, so change both.
import { largestLogRatio, type GateOptions } from './policy-loss-options';
import type { TokenLoss } from './clipped-surrogate';
import { clamp } from './kl';

/** Returns the loss of one token, with verl's bound of ±20 on the log-ratio. SAPO clips nothing. */
export function sapoTokenLoss(logRatio: number, advantage: number, { tau_pos, tau_neg }: GateOptions): TokenLoss {
  const ratio = Math.exp(clamp(logRatio, -largestLogRatio, largestLogRatio));
  const tau = advantage > 0 ? tau_pos : tau_neg;
  const gate = 1 / (1 + Math.exp(-tau * (ratio - 1)));
  return {
    loss: (-4 / tau) * gate * advantage,
    slope: Math.abs(logRatio) > largestLogRatio ? 0 : -4 * gate * (1 - gate) * ratio * advantage,
    clipped: false,
    clippedLower: false,
  };
}
