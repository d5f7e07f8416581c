// Checks what a chart of the workspace declares when it is loaded: its texts, and the metrics that it draws or the function
// that computes its lines.
import { UserError } from '../../common/user-error';
import { PluginError } from '../../plugins/client/plugin-runner';
import type { PluginDescription } from '../../protocol/plugin-link';
import { ownStart } from '../../run-data/charts/chart-plan';
import { nameInTable } from '../../run-data/charts/metric-names';
import { chartPlanSchema, type StoredPlan } from '../../run-data/charts/own-charts';
import { shown, type CallablePlugin } from './checked-values';

/** Whether a chart computes its lines; otherwise it lists metrics. */
export const computesLines = ({ functions }: PluginDescription): boolean => functions.includes('lines');

/**
 * Returns the plan of a chart. That of computed lines lists their metrics.
 * @throws UserError that names the first invalid property
 */
export function planOf(description: PluginDescription, path: string): StoredPlan {
  const { name, properties } = description;
  const isComputed = computesLines(description);
  const listsKeys = properties.keys !== undefined;
  if (isComputed === listsKeys)
    throw new UserError(
      `plug-in ${path} has a chart with ${isComputed ? 'both lines and keys' : 'neither lines nor keys'}: give it lines, a function, or keys, a list of keys of metrics`,
    );
  const declared = isComputed ? { ...properties, keys: [`${ownStart}${name}/*`] } : properties;
  const parsed = chartPlanSchema.safeParse(declared);
  if (parsed.success) return parsed.data;
  const [{ path: at, message }] = parsed.error.issues;
  const key = String(at[0]);
  throw new UserError(
    `plug-in ${path} has a chart whose ${key} is ${shown(properties[key])} (${message}): give it an allowed value`,
  );
}

/** Returns the plan of a chart. @throws PluginError if it is invalid or lists a key that no metric has */
export function checkedPlan({ path, description }: CallablePlugin): StoredPlan {
  const plan = planOf(description, path);
  const unknown = plan.keys.flat().find(key => !key.includes('*') && nameInTable(key) === undefined);
  if (unknown === undefined) return plan;
  throw new PluginError(path, undefined, {
    what: `has a chart of ${unknown}, which is the key of no metric`,
    remedy: 'use keys of docs/METRICS.md, or plugins/<name> for a metric of the workspace',
  });
}
