// Schemas of the lines that a training step writes in addition to its episodes: `metrics.jsonl`, `scores.jsonl` and
// `diagnostics/groups-*.jsonl`.
import { z } from 'zod';

/** A line of `metrics.jsonl`: step, time, then metrics by RAGEN's key names. Non-finite values are left out. */
export const metricsLineSchema = z
  .object({
    step: z.number().int(),
    time: z.string(),
    wall_s: z.number().optional().describe('absent if another trainer trained the run and stored no durations'),
  })
  .catchall(z.union([z.number(), z.string()]));
export type MetricsLine = z.infer<typeof metricsLineSchema>;

/**
 * A line of `scores.jsonl`: distribution of the scores of a step's training episodes. Episodes that ended with an
 * environment error are not counted.
 */
export const scoresLineSchema = z.object({
  step: z.number().int(),
  tags: z
    .record(z.string(), z.array(z.tuple([z.number(), z.number().int()])))
    .describe(
      'for each tag, pairs in ascending order of score. A pair is a score (reward + penalty, before normalisation) and the number of episodes with this score',
    ),
});
export type ScoresLine = z.infer<typeof scoresLineSchema>;

/** A line of `diagnostics/groups-*.jsonl` (`trainer.log_group_rv_table`). */
export const groupRowSchema = z.object({
  step: z.number().int(),
  group_id: z.number().int(),
  tag: z.string(),
  seed: z.number().int(),
  scores: z.array(z.number()).describe('scores of the group’s episodes: reward + penalty, before normalisation'),
  reward_std: z.number().describe('unbiased standard deviation of the quantity that the rollout filter measures'),
  selected: z.boolean().describe('whether the group was trained on'),
});
export type GroupRow = z.infer<typeof groupRowSchema>;
