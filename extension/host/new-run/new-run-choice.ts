// What a choice on the New Run page comes to: overrides for the terminal, and a configuration file that says the same. Pure.
import { stringify } from 'yaml';
import type { GroupsByTag, NewRunChoice } from '../../protocol/new-run-page';
import { valueAt } from '../../protocol/settings';
import { yamlValue } from '../../protocol/yaml-text';

const sides = ['train', 'val'] as const;

/** The choice as `key=value`, as `ragen train` takes them. */
export function overridesOf({ values, groups }: Pick<NewRunChoice, 'values' | 'groups'>): string[] {
  const own = Object.entries(values).map(([key, value]) => `${key}=${value.trim()}`);
  return [...own, ...Object.entries(groupKeys(groups)).map(([key, value]) => `${key}=${JSON.stringify(value)}`)];
}

/**
 * The choice as a configuration that builds on the preset `name`.
 * @param description its first line, a comment
 */
export function yamlOfChoice(
  { values, groups }: Pick<NewRunChoice, 'values' | 'groups'>,
  name: string,
  description: string,
): string {
  const document: Record<string, unknown> = { defaults: [name, '_self_'] };
  for (const [key, text] of Object.entries(values)) put(document, key, plainValue(text));
  for (const [key, value] of Object.entries(groupKeys(groups))) put(document, key, value);
  return `# ${description}\n${stringify(document, { lineWidth: 120, flowCollectionPadding: false })}`;
}

/** Prompt groups by tag in a resolved configuration. */
export function groupsIn(config: Readonly<Record<string, unknown>>, side: 'train' | 'val'): GroupsByTag {
  const read = (name: string): unknown[] => {
    const list = valueAt(config, `es_manager.${side}.env_configs.${name}`);
    return Array.isArray(list) ? list : [];
  };
  const counts = read('n_groups');
  return Object.fromEntries(read('tags').map((tag, i) => [String(tag), Number(counts[i])]));
}

/** The keys that say which environments are played, with their values; those without groups are left out. */
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

/** The value that a text is in YAML, a text where it is none. */
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
