// Checks what a chart of the workspace declares when it is loaded: its texts, and the metrics that it draws or the function
// that computes its lines.
import { UserError } from '../../common/user-error';
import { PluginError } from '../../plugins/client/plugin-runner';
import type { PluginDescription } from '../../protocol/plugin-link';
import { ownStart } from '../../run-data/charts/chart-plan';
import { nameInTable } from '../../run-data/charts/metric-names';
import { chartPlanSchema, longest, mostLines, type StoredPlan } from '../../run-data/charts/own-charts';
import { shown, type CallablePlugin } from './checked-values';

const textOf = (characters: number): string => `a text of 1 to ${characters} characters`;

/** What a property of a plan may be, for messages. */
const allowed: Readonly<Record<keyof StoredPlan, string>> = {
  name: textOf(longest.name),
  title: textOf(longest.title),
  unit: 'number, share or seconds',
  explanation: textOf(longest.explanation),
  keys: `a list of 1 to ${mostLines} keys of metrics`,
  first: 'true or false',
  always: 'true or false',
  plain: 'true or false',
  apart: 'true or false',
};
const allowedKey = `a key of 1 to ${longest.key} characters, or a list of 1 to ${mostLines} such keys`;

/** Maximum number of keys that no metric has in a message. */
const mostNamed = 5;

/** Keys that environments name. */
const ofEnvironment = /^(train|val-env)\/[^/]+\/./;

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
  const [property, index] = parsed.error.issues[0].path as [keyof StoredPlan, number?];
  const isKey = property === 'keys' && index !== undefined;
  const value = isKey ? (properties.keys as unknown[])[index] : properties[property];
  throw new UserError(
    `plug-in ${path} has a chart whose property ${isKey ? `keys[${index}]` : property} is ${shown(value)}: use ${isKey ? allowedKey : allowed[property]}`,
  );
}

/** Returns the plan of a chart. @throws UserError if it is invalid; PluginError if it lists keys that no metric has */
export function checkedPlan({ path, description }: CallablePlugin): StoredPlan {
  const plan = planOf(description, path);
  const error = unknownKeys(plan, path);
  if (error) throw error;
  return plan;
}

/**
 * Returns an error if a plan lists keys that no metric can have, whatever the environments and plug-ins of a run are;
 * patterns are not examined.
 */
export function unknownKeys({ keys }: StoredPlan, path: string): PluginError | null {
  const unknown = keys
    .flat()
    .filter(key => !key.includes('*') && !ofEnvironment.test(key) && nameInTable(key) === undefined);
  if (unknown.length === 0) return null;
  const named = [...unknown.slice(0, mostNamed), ...(unknown.length > mostNamed ? ['…'] : [])].join(', ');
  return new PluginError(path, undefined, {
    what: `has a chart of keys that no metric has (${named})`,
    remedy: 'use keys of docs/METRICS.md, or plugins/<name> for a metric of the workspace',
  });
}
