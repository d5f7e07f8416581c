// All known values of a sampled token: the values that the run recorded and, if available, the values that a checkpoint
// computed. Pure functions.
import { z } from 'zod';
import type { Episode } from '../../../run-data/episode';
import type { Manifest } from '../../../run-data/run-manifest';
import type { Rescored, RescoredToken } from '../../../protocol/inspection';

/** Settings of the run that determine whether a token's gradient is clipped and whether ratios are meaningful. */
export interface ClipRange {
  low: number;
  high: number;
  /**
   * Whether validation and training have different sampling temperatures. If so, ratios of validation tokens are
   * meaningless.
   */
  validationDiffers: boolean;
}

export interface TokenFacts {
  id: number;
  /**
   * Whether the token's mask is 1: the model sampled the token, and training uses it unless the whole episode is
   * excluded from training.
   */
  trained: boolean;
  /** Log-prob (natural logarithm) under the policy that sampled the token. */
  then: number | null;
  advantage: number | null;
  /**
   * Log-prob under the checkpoint. `now`, `rank`, `top` and `ratio` are null until the checkpoint has scored the
   * episode.
   */
  now: number | null;
  /**
   * Entropy of the distribution at this position, in nats. Until the checkpoint has scored the episode, `entropy`, `kl`
   * and `value` are the values that the trainer recorded during the update.
   */
  entropy: number | null;
  rank: number | null;
  top: RescoredToken['top'];
  /** Probability under the checkpoint / probability at sampling. */
  ratio: number | null;
  /** Whether PPO clips this token (`isClipped`); null if the ratio or the advantage is null. */
  clipped: boolean | null;
  /**
   * Log-prob minus the reference policy's log-prob: a one-sample estimate of the KL divergence, which may be negative.
   */
  kl: number | null;
  /** Log-prob under the teacher of on-policy distillation. */
  teacher: number | null;
  value: number | null;
}

const configSchema = z.object({
  actor_rollout_ref: z.object({
    actor: z.object({ clip_ratio_low: z.number(), clip_ratio_high: z.number() }),
    rollout: z.object({ temperature: z.number(), val_kwargs: z.object({ temperature: z.number() }) }),
  }),
});

/** Returns the clip range from a run's manifest; null if its configuration lacks the keys. */
export function clipRange({ config }: Pick<Manifest, 'config'>): ClipRange | null {
  const read = configSchema.safeParse(config).data?.actor_rollout_ref;
  if (!read) return null;
  const { clip_ratio_low: low, clip_ratio_high: high } = read.actor;
  return { low, high, validationDiffers: read.rollout.temperature !== read.rollout.val_kwargs.temperature };
}

/** Returns the values of the token at `index` of the episode's tokens. */
export function tokenFacts(
  { tokens, mode }: Episode,
  index: number,
  rescored: Rescored | undefined,
  clip: ClipRange | null,
): TokenFacts {
  const scored = rescored?.tokens[index];
  const then = tokens.logprobs[index] ?? null;
  const now = scored?.logprob ?? null;
  const advantage = tokens.advantages?.[index] ?? null;
  const comparable = mode === 'train' || clip?.validationDiffers === false;
  const ratio = comparable && then !== null && now !== null ? Math.exp(now - then) : null;
  const reference = scored?.reference ?? tokens.ref_logprobs?.[index] ?? null;
  const policy = now ?? then;
  return {
    id: tokens.ids[index],
    trained: tokens.mask[index] === 1,
    then,
    advantage,
    now,
    entropy: scored?.entropy ?? tokens.entropies?.[index] ?? null,
    rank: scored?.rank ?? null,
    top: scored?.top ?? [],
    ratio,
    clipped: ratio === null || advantage === null || !clip ? null : isClipped(ratio, advantage, clip),
    kl: policy === null || reference === null ? null : policy - reference,
    teacher: tokens.teacher_logprobs?.[index] ?? null,
    value: scored?.value ?? tokens.values?.[index] ?? null,
  };
}

/**
 * Whether PPO clips a token, so that the token's objective is flat at `ratio`. The objective is the minimum of the
 * clipped and the unclipped term. It is therefore flat above the clip range for positive advantages, and below the clip
 * range for negative advantages.
 */
export const isClipped = (ratio: number, advantage: number, { low, high }: ClipRange): boolean =>
  (advantage > 0 && ratio > 1 + high) || (advantage < 0 && ratio < 1 - low);
