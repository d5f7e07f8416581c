// Multiplies advantages by factors, in RAGEN's order:
// - a soft weight, which depends on the reward std of the group
// - a scale, which depends on the share of groups that the rollout filter kept
// - a weight, which depends on the length of the sample
// - zero in a control run (`zero_task_advantage`)
// - the credit weight of each token, which depends on the policy's confidence in it (`workbench.credit_mask`)
// - the importance weight of each token, which corrects for the difference between training policy and sampler
import { lengthWeights, softAdvantageWeights } from '../../algorithms/advantage-weights';
import { forEachGroup } from '../../algorithms/group-statistics';
import type { GroupedScores } from '../../algorithms/group-statistics';
import { filterLossScale } from '../../algorithms/rollout-filter';
import type { RunConfig } from '../config/schema';

export interface FactorInput extends GroupedScores {
  /** One mask per sample; 1 at tokens on which the policy is trained. */
  masks: readonly Uint8Array[];
  /** Importance weights, one array per sample with one weight per token. */
  corrections: readonly Float32Array[];
  keptRatio: number;
  /** Credit weights, as corrections; null without a credit mask. */
  credit: readonly Float32Array[] | null;
}

/** Multiplies `advantages` in place; returns the metrics of the soft weights. */
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
    row.forEach((advantage, token) => {
      const weight = input.corrections[sample][token] * (input.credit?.[sample][token] ?? 1);
      row[token] = factor === 0 ? 0 : advantage * factor * weight;
    });
  });
  return soft?.metrics ?? {};
}

/** Returns one weight per sample, equal within a group. The std of a group of one sample is taken as 1, as in GRPO. */
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
