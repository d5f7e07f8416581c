// Turns a composed tree into a typed configuration: removes ignored keys, and checks the tree against the schema and
// the rules that relate several keys. Every problem gets the source location of its value.
import type { z } from 'zod';
import { expectation, schemaAt } from '../../common/json-schema';
import type { JsonSchema } from '../../common/json-schema';
import { didYouMean } from '../../common/suggest';
import { shown } from './config-error';
import type { ConfigProblem } from './config-error';
import { brokenRules } from './cross-checks';
import { mayHoldSecret } from './secret-checks';
import { ignoredKeys } from './ignored-keys';
import { configJsonSchema, runConfigSchema } from './schema';
import type { RunConfig } from './schema';
import { withoutVagenNames } from './vagen-estimators';
import { nodeAt, toPlain } from './yaml-tree';
import type { MapNode, Tree } from './yaml-tree';

/** Formats a path: `a.b[2]` for ['a', 'b', 2]. */
const keyText = (path: readonly PropertyKey[]): string =>
  path.map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i > 0 ? '.' : ''}${String(part)}`)).join('');
const keyPath = (key: string): PropertyKey[] =>
  key.split('.').flatMap(part =>
    part
      .split(/[[\]]/)
      .filter(Boolean)
      .map((name, i) => (i > 0 ? Number(name) : name)),
  );

/** For some keys, a map from the spelling of a value in RAGEN's scripts to the spelling that the schema permits. */
export const spellings: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'actor_rollout_ref.actor.kl_loss_type': { 'low-var-kl': 'low_var_kl' },
  'algorithm.kl_penalty': { 'low-var-kl': 'low_var_kl' },
};

/**
 * Keys whose values are names that the user chooses. A number is accepted as a name and converted to text, because
 * RAGEN's script _9_2048 names its experiment 2048.
 */
export const chosenNames: ReadonlySet<string> = new Set(['trainer.experiment_name', 'trainer.project_name']);

/** A key that is accepted but has no effect. `reason` is a predicate such as `has no effect here: …`. */
export interface IgnoredKey {
  key: string;
  reason: string;
}

/**
 * Checks a composed, interpolated tree. Returns the configuration, or null if problems were added to `problems`.
 * Ignored keys are added to `ignored`. If an invalid value was interpolated from another key, the problem's message
 * refers to that other key, because the user must change the value there.
 */
export function validate(
  tree: MapNode,
  options: { hasDefaults: boolean },
  problems: ConfigProblem[],
  ignored: IgnoredKey[],
): RunConfig | null {
  const before = problems.length;
  const failed = new Set(problems.map(problem => problem.key));
  const root = withoutVagenNames(respell(withoutIgnored(tree, ignored)));
  const report: Report = (path, sentence, at) => {
    const node = nodeAt(root, path);
    const key = at === 'key' ? keyText(path) : (node?.origin ?? keyText(path));
    const message = sentence(key);
    if (failed.has(key)) return;
    if (problems.some(problem => problem.message === message)) return;
    const location = locationOf(root, path, at);
    const { override } = location;
    const isUnshown = at === 'unshown' || mayHoldSecret(String(path.at(-1)));
    const cut = isUnshown && override !== undefined ? { override: override.replace(/=.*/s, '=…') } : {};
    problems.push({ key, message, ...location, ...cut });
  };

  const parsed = runConfigSchema.safeParse(toPlain(root));
  if (!parsed.success) reportIssues(parsed.error.issues, root, options, report);
  if (parsed.success) {
    for (const { key, sentence, unshown } of brokenRules(parsed.data))
      report(keyPath(key), name => `config: ${name} ${sentence}`, unshown ? 'unshown' : undefined);
    const { model_path, actor_rollout_ref, critic } = parsed.data;
    for (const [key, { path }] of [
      ['actor_rollout_ref.model.path', actor_rollout_ref.model],
      ['critic.model.path', critic.model],
    ] as const)
      if (path !== model_path)
        ignored.push({
          key,
          reason: `differs from model_path and has no effect, because policy and critic both start from model_path (${shown(model_path)}): change model_path instead`,
        });
    const elsewhere = parsed.data.trainer.logger.filter(name => name !== 'console');
    if (elsewhere.length > 0)
      ignored.push({
        key: 'trainer.logger',
        reason: `names ${elsewhere.join(', ')}, which has no effect: metrics are written to metrics.jsonl in the run folder and, with workbench.tensorboard=true, as TensorBoard files`,
      });
  }
  return parsed.success && problems.length === before ? parsed.data : null;
}

type Report = (path: readonly PropertyKey[], sentence: (key: string) => string, at?: 'key' | 'unshown') => void;

function reportIssues(
  issues: readonly z.core.$ZodIssue[],
  root: MapNode,
  options: { hasDefaults: boolean },
  report: Report,
): void {
  const missing = issues.filter(issue => nodeAt(root, issue.path) === undefined);
  if (missing.length > 5 && !options.hasDefaults) {
    report(
      [],
      () =>
        `config: there is no defaults list, so ${missing.length} keys are missing: put defaults: [base, _self_] at the top`,
    );
    issues = issues.filter(issue => !missing.includes(issue));
  }
  for (const issue of issues) {
    if (issue.code === 'unrecognized_keys') {
      for (const unknown of issue.keys) {
        const path = [...issue.path, unknown];
        report(path, key => `config: ${key} is not a known key: ${adviseOnKey(issue.path, unknown)}`, 'key');
      }
    } else if (issue.code === 'invalid_key') {
      const name = issue.path.at(-1);
      report(
        issue.path,
        key =>
          `config: ${key} is not a valid name: use only letters, digits, dots, hyphens and underscores in ${shown(name)}`,
        'key',
      );
    } else {
      const expected = expectation(schemaAt(configJsonSchema(), issue.path) ?? {});
      const node = nodeAt(root, issue.path);
      const value = mayHoldSecret(String(issue.path.at(-1))) ? () => '…' : shown;
      if (node) report(issue.path, key => `config: ${key} is ${value(toPlain(node))}: use ${expected}`);
      else report(issue.path, key => `config: ${key} is missing: add it (${expected})`);
    }
  }
}

/**
 * Returns the remedy for the unknown key `unknown` below `path`. The remedy suggests a schema key of the same name at
 * another level, or else a schema key with a similar name at the same level.
 */
export function adviseOnKey(path: readonly PropertyKey[], unknown: string, alsoHere: readonly string[] = []): string {
  const schema = schemaAt(configJsonSchema(), path);
  // The environment's code defines the keys of env_config, so the schema cannot list them.
  if (path.at(-1) === 'env_config') {
    const near = didYouMean(unknown, alsoHere, '');
    return `${near && `${near} otherwise `}put a + before the override to add the key: +${[...path, unknown].join('.')}=…`;
  }
  knownLeaves ??= leafKeys(configJsonSchema(), '');
  const elsewhere = knownLeaves.find(key => key.endsWith(`.${unknown}`));
  if (elsewhere) return `did you mean ${elsewhere}?`;
  const near = didYouMean(unknown, [...Object.keys(schema?.properties ?? {}), ...alsoHere], '');
  if (near) return near;
  const open = (schema?.anyOf ?? [schema]).some(option => typeof option?.additionalProperties === 'object');
  return open ? 'put a + before the override to add the key' : 'remove it';
}

/** All leaf keys of the schema, cached because a file may have thousands of unknown keys. */
let knownLeaves: readonly string[] | undefined;

function leafKeys(schema: JsonSchema, prefix: string): string[] {
  if (!schema.properties) return [prefix];
  return Object.entries(schema.properties).flatMap(([key, child]) =>
    leafKeys(child, prefix ? `${prefix}.${key}` : key),
  );
}

/**
 * Returns the location of the value at `path`, or of its key if `at` is `key`. If the value is missing, returns the
 * location of the nearest node above it.
 */
function locationOf(root: MapNode, path: readonly PropertyKey[], at?: 'key' | 'unshown') {
  for (let length = path.length; length >= 0; length--) {
    const node = nodeAt(root, path.slice(0, length));
    if (node) return at === 'key' || length < path.length ? (node.keyLocation ?? node.location) : node.location;
  }
  return root.location;
}

function withoutIgnored(tree: MapNode, ignored: IgnoredKey[]): MapNode {
  const strip = (map: MapNode, above: readonly string[]): MapNode => {
    const entries = new Map<string, Tree>();
    for (const [name, child] of map.entries) {
      const path = [...above, name];
      const steers = steeredBy(path);
      if (steers !== undefined)
        ignored.push({ key: path.join('.'), reason: `has no effect here: it configures ${steers}` });
      else entries.set(name, child.kind === 'map' ? strip(child, path) : child);
    }
    return { ...map, entries };
  };
  return strip(tree, []);
}

/** Returns a description of what the ignored key at `path` configures in RAGEN; undefined for any other key. */
function steeredBy(path: readonly string[]): string | undefined {
  const own = path.join('.');
  if (Object.hasOwn(ignoredKeys, own)) return ignoredKeys[own];
  const above = path.slice(0, -1);
  const any = [...above, '*'].join('.');
  const isOther = Object.hasOwn(ignoredKeys, any) && !schemaAt(configJsonSchema(), path);
  return isOther ? ignoredKeys[any] : undefined;
}

function respell(root: MapNode): MapNode {
  const change = (map: MapNode, prefix: string): MapNode => {
    const entries = [...map.entries].map(([name, child]): [string, Tree] => {
      const key = prefix + name;
      if (child.kind === 'map') return [name, change(child, `${key}.`)];
      if (chosenNames.has(key) && child.kind === 'scalar' && typeof child.value === 'number')
        return [name, { ...child, value: child.source ?? String(child.value) }];
      const other = Object.hasOwn(spellings, key) ? spellings[key] : undefined;
      if (!other || child.kind !== 'scalar' || typeof child.value !== 'string' || !Object.hasOwn(other, child.value))
        return [name, child];
      return [name, { ...child, value: other[child.value] }];
    });
    return { ...map, entries: new Map(entries) };
  };
  return change(root, '');
}

/**
 * Returns whether an override may set `path` without `+` although the tree has no such key: true for schema keys and
 * ignored keys.
 */
export function isKnownKey(path: readonly string[]): boolean {
  for (let length = 1; length <= path.length; length++) if (steeredBy(path.slice(0, length)) !== undefined) return true;
  let schema: JsonSchema | undefined = configJsonSchema();
  for (const part of path) {
    const properties: Record<string, JsonSchema> | undefined = schema?.properties;
    schema = properties && Object.hasOwn(properties, part) ? properties[part] : undefined;
  }
  return schema !== undefined;
}
