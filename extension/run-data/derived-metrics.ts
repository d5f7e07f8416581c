// `derived-metrics.json` of the run folder of another trainer's run: the metrics that the trainer did not log, and that
// were computed from its rollouts instead. Pages say so where they show what such a metric means.
import { z } from 'zod';

export const derivedMetricsSchema = z.object({
  schema: z.literal(1),
  names: z.array(z.string()).describe('metrics computed from the stored rollouts'),
  model: z
    .string()
    .optional()
    .describe('name of the model that scored the rollouts, for metrics whose name begins with collapse_'),
});
export type DerivedMetrics = z.infer<typeof derivedMetricsSchema>;

export const nothingDerived: DerivedMetrics = { schema: 1, names: [] };

/**
 * Returns the meanings of a run's metrics (metric-meanings.ts) with a sentence about the origin of each derived metric.
 * @param meaningOf returns the meaning of a metric, or undefined
 */
export function derivedMeanings(
  { names, model }: DerivedMetrics,
  trainer: string,
  meaningOf: (name: string) => string | undefined,
): Record<string, string> {
  return Object.fromEntries(
    names.map(name => {
      const scored = name.startsWith('collapse_') && model !== undefined ? ` under ${model}` : '';
      const origin = `Derived from the stored rollouts${scored}; ${trainer} did not log it.`;
      return [name, [meaningOf(name), origin].filter(text => text !== undefined).join(' ')];
    }),
  );
}
