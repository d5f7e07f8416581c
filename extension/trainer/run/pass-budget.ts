// The maximum number of tokens and rows in one pass of the engine. The memory plan (plan/run-plan.ts) uses the same
// rule.
import type { RunConfig } from '../config/schema';
import type { PassBudget } from '../../engine/training-samples';

/**
 * Returns the limits of one engine pass: as many tokens as `episodes` episodes of full length, but at most
 * ppo_max_token_len_per_gpu.
 */
export function passBudget({ actor_rollout_ref }: RunConfig, episodes: number, rows: number): PassBudget {
  const { actor, rollout } = actor_rollout_ref;
  return { maxTokens: Math.min(episodes * rollout.max_model_len, actor.ppo_max_token_len_per_gpu), maxRows: rows };
}
