// What finished advantages are multiplied by, in RAGEN's order: the spread of the group's rewards, the share that the filter kept, the
// relative length of the sample, nothing at all in a control run, and how much likelier training finds a token than the sampler did.
import { lengthWeights, softAdvantageWeights } from './algorithms/advantage-weights';
import { forEachGroup } from './algorithms/group-statistics';
import type { GroupedScores } from './algorithms/group-statistics';
import { filterLossScale } from './algorithms/rollout-filter';
import type { RunConfig } from './config/schema';

export interface FactorInput extends GroupedScores {
  /** 1 where the policy is trained, one a sample. */
  masks: readonly Uint8Array[];
  /** Importance weights by token. */
  corrections: readonly Float32Array[];
  keptRatio: number;
}

/** Multiplies `advantages` in place; gives the metrics of it. */
export function applyFactors(
  advantages: readonly Float32Array[],
  input: FactorInput,
  { algorithm, actor_rollout_ref: { actor } }: RunConfig,
): Record<string, number> {
  const soft = algorithm.soft_advantage_reweight ? softFactors(input) : null;
  const lengths = actor.grpo_advantage_length_weight
    ? lengthWeights(input.masks.map(mask => mask.reduce((count, bit) => count + bit, 0)))
    : null;
  const share = algorithm.zero_task_advantage ? 0 : filterLossScale(actor.filter_loss_scaling, input.keptRatio);
  advantages.forEach((row, sample) => {
    const factor = share * (soft?.weights[sample] ?? 1) * (lengths?.[sample] ?? 1);
    row.forEach(
      (advantage, token) => (row[token] = factor === 0 ? 0 : advantage * factor * input.corrections[sample][token]),
    );
  });
  return soft?.metrics ?? {};
}

/** A weight a sample: that of its group. A group of one has, as in GRPO, deviation 1. */
function softFactors(batch: GroupedScores): { weights: Float32Array; metrics: Record<string, number> } {
  const stds: number[] = [];
  const groupOf = new Int32Array(batch.scores.length);
  forEachGroup(batch, (samples, { count, std }) => {
    for (const sample of samples) groupOf[sample] = stds.length;
    stds.push(count > 1 ? std : 1);
  });
  const { weights, metrics } = softAdvantageWeights(stds);
  return {
    weights: Float32Array.from(groupOf, group => weights[group]),
    metrics: Object.fromEntries(Object.entries(metrics).map(([key, value]) => [`train/${key}`, value])),
  };
}
