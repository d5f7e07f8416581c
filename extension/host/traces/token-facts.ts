// Everything that is known of a sampled token: what the run recorded, and what a checkpoint says of it now where that was asked. Pure.
import { z } from 'zod';
import type { Episode, Manifest } from '../../protocol/run-folder';
import type { Rescored, RescoredToken } from '../../protocol/inspection';

/** Of the run's configuration, what tells whether a token's gradient is clipped and what ratios mean. */
export interface ClipRange {
  low: number;
  high: number;
  /** Validation samples at another temperature than training: ratios would compare two temperatures. */
  validationDiffers: boolean;
}

export interface TokenFacts {
  id: number;
  /** The mask is 1: it was sampled, and is trained on if its episode is. */
  trained: boolean;
  /** Under the policy that sampled it; natural logarithm. */
  then: number | null;
  advantage: number | null;
  /** Under the checkpoint, as all that follows; null before it was asked. */
  now: number | null;
  /** Of the distribution here, in nats; before the checkpoint was asked as the update recorded it, as are divergence and value. */
  entropy: number | null;
  rank: number | null;
  top: RescoredToken['top'];
  /** p now / p then. */
  ratio: number | null;
  /** The ratio is out of the range on the side where the objective stops at it; null where there is no ratio or no advantage. */
  clipped: boolean | null;
  /** ln p − ln p of the reference policy: one sample of their divergence, which may be negative. */
  kl: number | null;
  value: number | null;
}

const configSchema = z.object({
  actor_rollout_ref: z.object({
    actor: z.object({ clip_ratio_low: z.number(), clip_ratio_high: z.number() }),
    rollout: z.object({ temperature: z.number(), val_kwargs: z.object({ temperature: z.number() }) }),
  }),
});

/** From a run's manifest; null where its configuration does not say. */
export function clipRange({ config }: Pick<Manifest, 'config'>): ClipRange | null {
  const read = configSchema.safeParse(config).data?.actor_rollout_ref;
  if (!read) return null;
  const { clip_ratio_low: low, clip_ratio_high: high } = read.actor;
  return { low, high, validationDiffers: read.rollout.temperature !== read.rollout.val_kwargs.temperature };
}

/** Of the token at `index` of the episode's tokens. */
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
    value: scored?.value ?? tokens.values?.[index] ?? null,
  };
}

/** PPO's objective takes the smaller of the two: it is flat above the range for good tokens and below it for bad ones. */
export const isClipped = (ratio: number, advantage: number, { low, high }: ClipRange): boolean =>
  (advantage > 0 && ratio > 1 + high) || (advantage < 0 && ratio < 1 - low);
