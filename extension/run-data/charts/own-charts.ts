// The charts of plug-ins in a run, as plans (envs/api/plugins/chart.ts). The trainer writes them as events, so that pages
// and reports draw them without the code of the plug-ins. A chart whose lines a plug-in computes is the plan of the metrics
// `plugin_charts/<name>/*`.
import { z } from 'zod';
import type { ChartPlan } from '../../../envs/api/plugins/chart';
import type { RunEvent } from '../run-events';

/** Maximum number of lines of a chart. */
export const mostLines = 64;

/** Maximum numbers of characters of the texts of a plan. */
export const longest = { name: 60, title: 80, explanation: 1000, key: 200 };

const text = (characters: number) => z.string().min(1).max(characters);
const key = text(longest.key);

/** A property that the schema lacked would be dropped, so the compiler checks that it has all of them. */
export const chartPlanSchema = z.object({
  name: text(longest.name),
  title: text(longest.title).optional(),
  unit: z.enum(['number', 'share', 'seconds']).optional().describe('absent if it follows from the first key'),
  explanation: text(longest.explanation).optional(),
  keys: z
    .array(z.union([key, z.array(key).min(1).max(mostLines)]))
    .min(1)
    .max(mostLines)
    .describe('keys of metrics, with `*` for a part of a key; of a list, the first that the run has is drawn'),
  first: z.boolean().optional(),
  always: z.boolean().optional(),
  plain: z.boolean().optional(),
  apart: z.boolean().optional(),
} satisfies Record<keyof ChartPlan, z.ZodType>);

export type StoredPlan = z.infer<typeof chartPlanSchema>;

/** `data` of `plugin_charts`: all charts of the run's plug-ins; they replace those of earlier events. */
export const pluginChartsSchema = z.object({ charts: z.array(chartPlanSchema).max(1000) });

/** Returns the charts of the plug-ins of several runs: of those with equal names, the last run's. */
export const ownChartsOf = (runs: readonly { events: readonly RunEvent[] }[]): readonly ChartPlan[] => [
  ...new Map(runs.flatMap(({ events }) => ownCharts(events).map(plan => [plan.name, plan] as const))).values(),
];

/** Returns the charts of a run's plug-ins; none in runs of versions that wrote no such events. */
export function ownCharts(events: readonly RunEvent[]): readonly ChartPlan[] {
  const newest = events.findLast(({ kind }) => kind === 'plugin_charts');
  return pluginChartsSchema.safeParse(newest?.data).data?.charts ?? [];
}
