// A resolved configuration as a flat table: dotted keys and values. Lists are values, in JSON.
import { isRecord } from '../common/json';

/**
 * Returns the values of a configuration by dotted key, in the order of the configuration. Numbers and texts stay as
 * they are; other values are JSON texts.
 */
export function configLeaves(config: Readonly<Record<string, unknown>>, above = ''): Map<string, number | string> {
  const leaves = new Map<string, number | string>();
  for (const [name, value] of Object.entries(config)) {
    const key = above + name;
    if (isRecord(value)) for (const [inner, leaf] of configLeaves(value, `${key}.`)) leaves.set(inner, leaf);
    else
      leaves.set(key, typeof value === 'string' || typeof value === 'number' ? value : (JSON.stringify(value) ?? ''));
  }
  return leaves;
}
