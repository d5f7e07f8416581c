// Command-line overrides in Hydra's grammar: `a.b=v` changes a key, `+a.b=v` adds a key, `++a.b=v` changes or adds a
// key, `~a.b` deletes a key. A value has the type that it would have in YAML; `[a,b]` and `{a: 1}` are a YAML list and
// map in flow form.
import type { ConfigProblem, Location } from './config-error';
import { emptyMap, parseYaml } from './yaml-tree';
import type { MapNode, ScalarNode, Tree } from './yaml-tree';

const form = /^(\+\+|\+|~)?([^=]*?)(?:=([\s\S]*))?$/;
const keyForm = /^[^\s.=[\]{}]+(\.[^\s.=[\]{}]+)*$/;
const maxParts = 32;

/** Parses an unquoted word by YAML's core schema. Punctuation such as `||` is treated as text. */
function plainScalar(text: string): ScalarNode['value'] {
  if (/^(null|Null|NULL|~)$/.test(text)) return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  const number = /^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/.test(text) ? Number(text) : NaN;
  return Number.isFinite(number) ? number : text;
}

function parseValue(text: string, location: Location, problems: ConfigProblem[]): Tree | null {
  const trimmed = text.trim();
  if (!/^[[{"']/.test(trimmed)) {
    const value = plainScalar(trimmed);
    return { kind: 'scalar', value, location, ...(typeof value === 'number' && { source: trimmed }) };
  }
  // Hydra accepts {a:1}, but YAML requires a space after the colon.
  const spaced = trimmed.startsWith('{')
    ? trimmed.replace(/("[^"]*"|'[^']*')|:(?=\S)/g, (all: string, quoted?: string) => quoted ?? `${all} `)
    : trimmed;
  return parseYaml(spaced, { override: location.override }, problems);
}

/**
 * Returns a copy of `root` with the overrides applied in order.
 * @param known `isKnown(path)` returns whether a key that the tree lacks may be set without `+`. For any other key that
 * the tree lacks, `advise` returns the remedy for the error message.
 */
export function applyOverrides(
  root: MapNode,
  overrides: readonly string[],
  known: { isKnown(path: readonly string[]): boolean; advise(path: readonly string[], name: string): string },
  problems: ConfigProblem[],
): MapNode {
  return overrides.reduce((tree, override) => {
    const location: Location = { override };
    const [, sign = '', key = '', value] = form.exec(override) ?? [];
    const complain = (sentence: string): MapNode => {
      problems.push({ key, message: `config: ${sentence}`, ...location });
      return tree;
    };
    const parts = key.split('.');
    if (!keyForm.test(key) || parts.length > maxParts || parts.includes('__proto__'))
      return complain(`the override has no valid key: write it like trainer.test_freq=10`);
    if (sign === '~') return remove(tree, parts, complain);
    if (value === undefined) return complain(`the override of ${key} has no value: write ${key}=value`);
    const missing = firstMissing(tree, parts);
    if (missing !== undefined && sign === '' && !known.isKnown(parts)) {
      const name = parts.slice(0, missing + 1).join('.');
      return complain(`${name} is not in the configuration: ${known.advise(parts.slice(0, missing), parts[missing])}`);
    }
    if (missing === undefined && sign === '+') return complain(`${key} already exists: remove the + from the override`);
    const node = parseValue(value, location, problems);
    return node ? set(tree, parts, { ...node, keyLocation: location }, location, complain) : tree;
  }, root);
}

function firstMissing(root: MapNode, parts: string[]): number | undefined {
  let node: Tree | undefined = root;
  for (const [index, part] of parts.entries()) {
    node = node?.kind === 'map' ? node.entries.get(part) : undefined;
    if (!node) return index;
  }
  return undefined;
}

function set(
  map: MapNode,
  parts: string[],
  node: Tree,
  location: Location,
  complain: (sentence: string) => MapNode,
): MapNode {
  const change = (at: MapNode, index: number): MapNode | null => {
    const entries = new Map(at.entries);
    if (index === parts.length - 1) return { ...at, entries: entries.set(parts[index], node) };
    const below = entries.get(parts[index]) ?? { ...emptyMap(location), keyLocation: location };
    // A null map (`env_config: null`) becomes a map when a key below it is set.
    const map =
      below.kind === 'scalar' && below.value === null
        ? { ...emptyMap(location), keyLocation: below.keyLocation }
        : below;
    const changed = map.kind === 'map' ? change(map, index + 1) : null;
    return changed && { ...at, entries: entries.set(parts[index], changed) };
  };
  const changed = change(map, 0);
  return (
    changed ??
    complain(
      `${parts.join('.')} cannot be set, because a key above it holds a single value or a list: override that key as a whole`,
    )
  );
}

function remove(map: MapNode, parts: string[], complain: (sentence: string) => MapNode): MapNode {
  if (firstMissing(map, parts) !== undefined)
    return complain(`${parts.join('.')} does not exist, so it cannot be removed: leave out the override with ~`);
  const change = (at: MapNode, index: number): MapNode => {
    const entries = new Map(at.entries);
    const below = entries.get(parts[index]);
    if (index === parts.length - 1 || below?.kind !== 'map') entries.delete(parts[index]);
    else entries.set(parts[index], change(below, index + 1));
    return { ...at, entries };
  };
  return change(map, 0);
}
