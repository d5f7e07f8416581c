// Searches for a small set of configuration changes that brings the memory plan below a limit. Changes that affect only
// the speed of the run are tried first; changes that affect what is trained are tried last. trainer/plan/run-plan.ts
// formats the result as a message.
import { largestMicroBatchTokens, planMemory } from './memory-plan';
import type { PlanInput } from './plan-input';

export interface Remedy {
  /**
   * Configuration overrides such as lora.rank=16. With these overrides, the plan is within the limit if `fits` is true.
   * `fits` is false only if all changes together do not suffice.
   */
  overrides: string[];
  fits: boolean;
  /** Bytes of the plan with all overrides. */
  bytes: number;
}

/**
 * Returns the changed plan input, and the configuration overrides that make this change; null if the change has no
 * effect.
 */
type Change = (input: PlanInput) => Applied | null;

interface Applied {
  input: PlanInput;
  overrides: string[];
}

/** LoRA rank proposed for a run that trains all weights. */
const proposedRank = 16;

/** Constraints on the proposals. */
export interface Bounds {
  /** Episodes per optimizer step. The proposed number of episodes per pass divides this number. */
  miniBatch: number;
  /** Shortest episode length that may be proposed, in tokens. */
  shortest: number;
  /**
   * Overrides that limit the concurrent episodes of validation to the number in training; null if validation has no
   * more concurrent episodes than training.
   */
  fewerEpisodes: { rollouts: number; overrides: string[] } | null;
}

/**
 * Returns the first single change that brings the plan within `limit` bytes. If no single change suffices, applies
 * changes in order until the plan fits, then drops unnecessary changes. If the plan does not fit with all changes,
 * returns all changes.
 */
export function remedyFor(input: PlanInput, limit: number, bounds: Bounds): Remedy {
  const changes = changesFor(limit, bounds);
  for (const change of changes) {
    const changed = change(input);
    const alone = changed && planned(changed);
    if (alone && alone.bytes <= limit) return { ...alone, fits: true };
  }
  let chosen: Change[] = [];
  let now: Applied = { input, overrides: [] };
  let best = planned(now);
  for (const change of changes) {
    chosen.push(change);
    now = applied([change], now);
    best = planned(now);
    if (best.bytes <= limit) break;
  }
  if (best.bytes > limit) return { ...best, fits: false };
  for (const change of [...chosen]) {
    const rest = chosen.filter(other => other !== change);
    const fewer = planned(applied(rest, { input, overrides: [] }));
    if (fewer.bytes > limit) continue;
    chosen = rest;
    best = fewer;
  }
  return { ...best, fits: true };
}

function applied(changes: readonly Change[], start: Applied): Applied {
  return changes.reduce((now, change) => {
    const changed = change(now.input);
    return changed ? { input: changed.input, overrides: [...now.overrides, ...changed.overrides] } : now;
  }, start);
}

const planned = ({ input, overrides }: Applied): Omit<Remedy, 'fits'> => ({
  overrides,
  bytes: planMemory(input).peak.bytes,
});

function changesFor(limit: number, { miniBatch, shortest, fewerEpisodes }: Bounds): Change[] {
  return [
    input => {
      if (!input.trains) return null;
      const most = Math.max(1, largestMicroBatchTokens(input, limit) / input.longest);
      const episodes = largestDivisor(miniBatch, most);
      const tokens = episodes * input.longest;
      if (tokens >= Math.max(input.updateTokens, input.critic ? input.criticTokens : 0)) return null;
      return {
        input: { ...input, updateTokens: tokens, criticTokens: tokens },
        overrides: [`micro_batch_size_per_gpu=${episodes}`],
      };
    },
    input =>
      fewerEpisodes && {
        input: { ...input, rollouts: fewerEpisodes.rollouts },
        overrides: fewerEpisodes.overrides,
      },
    input => {
      const { longest, trains, scoreTokens, referenceTokens, reference } = input;
      if (!trains || Math.max(scoreTokens, reference ? referenceTokens : 0) <= longest) return null;
      const tokens = { scoreTokens: Math.min(scoreTokens, longest), referenceTokens: longest };
      return { input: { ...input, ...tokens }, overrides: ['log_prob_micro_batch_size_per_gpu=1'] };
    },
    input =>
      input.trains && !input.checkpointed
        ? {
            input: { ...input, checkpointed: true },
            overrides: ['actor_rollout_ref.model.enable_gradient_checkpointing=true'],
          }
        : null,
    input =>
      input.trains && !input.lora && input.moments.actor === 'float32'
        ? {
            input: { ...input, moments: { actor: 'int8', critic: 'int8' } },
            overrides: [
              'actor_rollout_ref.actor.optim.moments=int8',
              ...(input.critic ? ['critic.optim.moments=int8'] : []),
            ],
          }
        : null,
    input =>
      input.lora
        ? null
        : {
            input: {
              ...input,
              lora: { rank: proposedRank, alpha: 2 * proposedRank, dropout: 0, targets: 'all-linear' },
            },
            overrides: [`lora.rank=${proposedRank}`],
          },
    input =>
      input.lora && (input.baseQuantization === 'none' || input.rolloutQuantization === 'none')
        ? {
            input: { ...input, baseQuantization: 'int8', rolloutQuantization: 'int8' },
            overrides: ['workbench.base_quantization=int8', 'workbench.rollout_quantization=int8'],
          }
        : null,
    input => shorter(input, limit, shortest),
  ];
}

/** Halves the episode length until the plan fits or the length reaches `shortest`. */
function shorter(input: PlanInput, limit: number, shortest: number): ReturnType<Change> {
  let now = input;
  while (now.longest / 2 >= shortest && planMemory(now).peak.bytes > limit) {
    const longest = Math.floor(now.longest / 2);
    const scaled = (tokens: number): number => Math.floor((tokens * longest) / now.longest);
    now = {
      ...now,
      longest,
      updateTokens: scaled(now.updateTokens),
      criticTokens: scaled(now.criticTokens),
      scoreTokens: scaled(now.scoreTokens),
      referenceTokens: scaled(now.referenceTokens),
    };
  }
  return now === input ? null : { input: now, overrides: [`actor_rollout_ref.rollout.max_model_len=${now.longest}`] };
}

/** Returns the largest divisor of `n` that is at most `most`. */
export function largestDivisor(n: number, most: number): number {
  for (let d = Math.min(n, Math.floor(most)); d > 1; d--) if (n % d === 0) return d;
  return 1;
}
