// Checks what an alarm of the workspace declares and returns: its metric, side and number of steps when it is loaded, and
// each bound.
import { z } from 'zod';
import type { AlarmBound, AlarmRule } from '../../../envs/api/plugins/alarm';
import { UserError } from '../../common/user-error';
import type { PluginDescription } from '../../protocol/plugin-link';
import { badValue, checkedRecord, shown, type CallablePlugin } from './checked-values';

type StaticRule = Omit<AlarmRule, 'bound'>;

/** A property that the schema lacked would be dropped, so the compiler checks that it has all of them. */
const ruleSchema = z.object({
  metric: z.string().min(1).max(200),
  label: z.string().min(1).max(200),
  side: z.enum(['under', 'over']),
  steps: z.int().min(1).max(20),
  instead: z.string().min(1).max(200).optional(),
  limit: z.string().max(200).optional(),
  measured: z.string().min(1).max(60).optional(),
} satisfies Record<keyof StaticRule, z.ZodType>);

/** Returns the static part of an alarm's definition. @throws UserError that names the first invalid property */
export function ruleOf({ properties }: PluginDescription, path: string): StaticRule {
  const parsed = ruleSchema.safeParse(properties);
  if (parsed.success) return parsed.data;
  const [{ path: at, message }] = parsed.error.issues;
  const key = at.join('.');
  throw new UserError(
    `plug-in ${path} has an alarm whose ${key} is ${shown(properties[key])} (${message}): give it an allowed value`,
  );
}

/** Asks an alarm for its bound. @throws PluginError if it fails or returns an invalid value */
export async function boundWith(
  plugin: CallablePlugin,
  before: readonly number[],
  limit?: number,
  highest?: number,
): Promise<AlarmBound | null> {
  const called = { path: plugin.path, function: 'bound' };
  const value = await plugin.call('bound', before, limit, highest);
  if (value === null) return null;
  const remedy = 'return { bound, label }, or null for too few values';
  const { bound, label } = checkedRecord(called, value, remedy);
  if (typeof bound !== 'number' || !Number.isFinite(bound) || typeof label !== 'string')
    throw badValue(called, `returned the bound ${shown(bound)} with the label ${shown(label)}`, remedy);
  return { bound, label: label.slice(0, 200) };
}
