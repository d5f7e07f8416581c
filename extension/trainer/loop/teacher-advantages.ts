// Adds the advantages of on-policy distillation (algorithms/distillation.ts) to those of the rewards. They carry the
// same importance weights per token, but none of the factors for rewards, such as soft weights and the filter's share.
import { distillationAdvantages } from '../../algorithms/distillation';
import type { DistillationSettings } from '../config/schema-distillation';
import { meanOf } from './metric-statistics';
import type { BatchSample } from './training-batch';

export interface TeacherInput {
  samples: readonly Pick<BatchSample, 'mask'>[];
  /** Log-probs of the tokens under the policy before its update, and under the teacher, in nats; one array per sample. */
  old: readonly Float32Array[];
  teacher: readonly Float32Array[];
  /** Importance weights, one array per sample with one weight per token. */
  corrections: readonly Float32Array[];
}

/** Changes `advantages` in place; returns the metrics of the teacher. */
export function addTeacherAdvantages(
  advantages: readonly Float32Array[],
  { samples, old, teacher, corrections }: TeacherInput,
  settings: DistillationSettings,
): Record<string, number> {
  const masks = samples.map(({ mask }) => mask);
  const sequences = masks.map((mask, i) => ({ policy: old[i], teacher: teacher[i], mask }));
  const distilled = distillationAdvantages(sequences, settings);
  advantages.forEach((row, i) => {
    const added = distilled.advantages[i];
    row.forEach((own, t) => (row[t] = (settings.use_rewards ? own : 0) + corrections[i][t] * added[t]));
  });
  return { 'distillation/kl': distilled.kl, 'distillation/teacher_log_prob': meanOf(teacher, masks) };
}
