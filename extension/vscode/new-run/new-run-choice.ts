// Converts the choices on the New Run page to CLI overrides and to an equivalent configuration file. Pure functions.
import { stringify } from 'yaml';
import type { GroupsByTag, NewRunChoice } from '../../protocol/new-run-page';
import { valueAt } from '../../run-data/changeable-settings';
import { yamlValue } from '../../common/yaml-text';
import { joinOverrides, splitOverrides } from '../runs/start/overrides-line';

const sides = ['train', 'val'] as const;

type Values = Pick<NewRunChoice, 'values' | 'groups' | 'overrides'>;
/** The configuration keys that select the chosen engine, with their values; empty if the preset's engine is used. */
export type EngineKeys = Readonly<Record<string, string | null>>;

/** Returns the choices as `key=value` overrides for `ragen train`. */
export function overridesOf({ values, groups, overrides }: Values, engine: EngineKeys = {}): string[] {
  const own = Object.entries(values).map(([key, value]) => `${key}=${value.trim()}`);
  const derived = { ...engine, ...groupKeys(groups) };
  return [
    ...splitOverrides(overrides),
    ...own,
    ...Object.entries(derived).map(([key, value]) => `${key}=${JSON.stringify(value)}`),
  ];
}

/**
 * Returns the choices as a configuration that extends the preset `name`.
 * @param description first line of the file, a comment
 */
export function yamlOfChoice(
  { values, groups, overrides }: Values,
  name: string,
  description: string,
  engine: EngineKeys = {},
): string {
  const document: Record<string, unknown> = { defaults: [name, '_self_'] };
  for (const override of splitOverrides(overrides)) {
    const [, key, text] = /^\+{0,2}([^~=]+)=([^]*)$/.exec(override) ?? []; // a file cannot delete a key (`~key`)
    if (key !== undefined) put(document, key, yamlOrText(text));
  }
  for (const [key, text] of Object.entries(values)) put(document, key, plainValue(text));
  for (const [key, value] of Object.entries({ ...engine, ...groupKeys(groups) })) put(document, key, value);
  return `# ${description}\n${yamlText(document)}`;
}

/** Returns a complete configuration as the text of a file. @param description first line of the file, a comment */
export const yamlOfConfig = (config: Readonly<Record<string, unknown>>, description: string): string =>
  `# ${description}\n${yamlText(config)}`;

const yamlText = (document: object): string => stringify(document, { lineWidth: 120, flowCollectionPadding: false });

/** Returns the number of prompt groups of each tag in a resolved configuration. */
export function groupsIn(config: Readonly<Record<string, unknown>>, side: 'train' | 'val'): GroupsByTag {
  const read = (name: string): unknown[] => {
    const list = valueAt(config, `es_manager.${side}.env_configs.${name}`);
    return Array.isArray(list) ? list : [];
  };
  const counts = read('n_groups');
  return Object.fromEntries(read('tags').map((tag, i) => [String(tag), Number(counts[i])]));
}

/**
 * Returns the configuration keys that select tags and numbers of prompt groups, with their values. Tags with zero
 * groups are left out.
 */
function groupKeys(groups: NewRunChoice['groups']): Record<string, unknown> {
  const keys: Record<string, unknown> = {};
  if (!groups) return keys;
  for (const side of sides) {
    const played = Object.entries(groups[side]).filter(([, count]) => count > 0);
    keys[`es_manager.${side}.env_groups`] = played.reduce((sum, [, count]) => sum + count, 0);
    keys[`es_manager.${side}.env_configs.tags`] = played.map(([tag]) => tag);
    keys[`es_manager.${side}.env_configs.n_groups`] = played.map(([, count]) => count);
  }
  return keys;
}

/**
 * Returns a run's overrides as choices of the form: plain values of the keys in the form, and one line with all other
 * overrides.
 * @param keys configuration keys that the form shows
 */
export function choicesOfRun(
  overrides: readonly string[],
  keys: readonly string[],
): Pick<NewRunChoice, 'values' | 'overrides'> {
  const values: Record<string, string> = {};
  const others: string[] = [];
  for (const override of overrides) {
    const at = override.indexOf('=');
    const [key, text] = [override.slice(0, at), override.slice(at + 1)];
    if (at > 0 && keys.includes(key) && /^[^"'[{]/.test(text)) values[key] = text;
    else others.push(override);
  }
  return { values, overrides: joinOverrides(others) };
}

/** Parses a text as a YAML value; a text that is no YAML stays a string. */
function yamlOrText(text: string): unknown {
  try {
    return yamlValue(text);
  } catch {
    return text;
  }
}

/** Parses a text as a YAML number or boolean; any other text stays a string. */
function plainValue(text: string): unknown {
  try {
    const value: unknown = yamlValue(text.trim());
    return ['number', 'boolean'].includes(typeof value) ? value : text.trim();
  } catch {
    return text.trim();
  }
}

function put(document: Record<string, unknown>, key: string, value: unknown): void {
  const parts = key.split('.');
  let at = document;
  for (const part of parts.slice(0, -1)) at = (at[part] ??= {}) as Record<string, unknown>;
  at[parts.at(-1)!] = value;
}
