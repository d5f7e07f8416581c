// The key `halving` of a sweep file: its schema, and the rule of successive halving (halving.ts) that it defines for the
// runs of the sweep.
import { z } from 'zod';
import { maximum } from '../../common/lists';
import { UserError } from '../../common/user-error';
import type { Halving } from '../../run-data/sweep-file';
import type { RunConfig } from '../../trainer/config/schema';
import { rungsBelow } from './halving';

export const halvingRule = z
  .strictObject({
    first_step: z.int().min(1).describe('step of the first comparison; each next one is `factor` times later'),
    factor: z.number().min(1.5).max(100).default(2).describe('the best 1 ÷ factor of the points continue'),
    least_points: z.int().min(1).default(1).describe('number of points that are never stopped'),
    metric: z.string().min(1).optional().describe('metric to compare; default: the validation success'),
    goal: z.enum(['max', 'min']).default('max').describe('whether a higher or a lower value is better'),
  })
  .describe('stops the worst points early (successive halving); absent: all points train to their end');

/**
 * Returns the rule for early stops of runs with these configurations; null without the key. @throws UserError if no validation precedes the first
 * comparison
 */
export function halvingOf(
  rule: z.infer<typeof halvingRule> | undefined,
  configs: readonly Pick<RunConfig, 'trainer'>[],
  id: string,
): Halving | null {
  if (!rule) return null;
  const { first_step, factor, least_points, metric = null, goal } = rule;
  const late = configs.find(
    ({ trainer: { test_freq } }) => metric === null && (test_freq < 1 || test_freq > first_step),
  );
  if (late)
    throw new UserError(
      `sweep ${id}: halving.first_step is ${first_step}, but trainer.test_freq is ${late.trainer.test_freq}, so no validation precedes the first comparison: lower trainer.test_freq, or raise halving.first_step`,
    );
  const steps = maximum(configs.map(({ trainer }) => trainer.total_training_steps));
  return { rungs: rungsBelow(steps, first_step, factor), factor, least_points, metric, goal };
}
