// Generates media/configuration.schema.json, the JSON schema of a configuration file for editors. It relaxes the schema
// of a complete configuration, because a file contains only some keys: no key is required, a value may reference
// another key, ignored keys are accepted, and every key shows its default.
import type { JsonSchema } from '../../../../extension/common/json-schema';
import { ignoredKeys } from '../../../../extension/trainer/config/ignored-keys';
import { configJsonSchema } from '../../../../extension/trainer/config/schema';
import { vagenEstimators } from '../../../../extension/trainer/config/vagen-estimators';
import { chosenNames, spellings } from '../../../../extension/trainer/config/validate';

/** A reference such as `${a.b}` to the value of another key. */
const reference: JsonSchema = { $ref: '#/definitions/reference' };

/** Returns the schema, with the plain values of the configuration `base` as defaults. */
export function configurationFileSchema(base: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const root = loosened(configJsonSchema(), [], base);
  for (const [key, steers] of Object.entries(ignoredKeys)) addIgnored(root, key.split('.'), steers);
  const list: JsonSchema = {
    description:
      'Configurations this one extends, merged in order; resolved beside the file, then among the presets. _self_ marks the position of this file’s own keys, last by default.',
    type: 'array',
    items: { type: 'string' },
  };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'RAGEN Workbench: configuration of a run',
    ...root,
    properties: { defaults: list, ...root.properties },
    definitions: { reference: { type: 'string', pattern: '\\$\\{[^{}$]+\\}' } },
  };
}

function loosened(schema: JsonSchema, path: readonly string[], value: unknown): JsonSchema {
  const { description, properties, additionalProperties } = schema;
  const about = { ...(description !== undefined && { description }) };
  if (properties) {
    const inner = Object.entries(properties).map(([name, child]): [string, JsonSchema] => [
      name,
      loosened(child, [...path, name], isRecord(value) ? value[name] : undefined),
    ]);
    return { ...about, type: 'object', properties: Object.fromEntries(inner), additionalProperties: false };
  }
  if (typeof additionalProperties === 'object' && additionalProperties.properties)
    return {
      ...about,
      type: 'object',
      additionalProperties: loosened(additionalProperties, [...path, '*'], undefined),
    };
  const fallback = value ?? schema.default;
  const options = (schema.anyOf ?? [schema]).map(option => choice(option, path));
  const sentence = description ?? schema.anyOf?.find(option => option.description)?.description;
  return {
    ...(sentence !== undefined && { description: sentence }),
    ...(fallback !== undefined && { default: fallback }),
    anyOf: [...options, ...(chosenNames.has(path.join('.')) ? [{ type: 'number' }] : []), reference],
  };
}

/** Returns the schema of one alternative of a value. */
function choice(schema: JsonSchema, path: readonly string[]): JsonSchema {
  const { description: _, default: __, required: ___, ...rest } = schema;
  if (rest.properties) return { ...loosened(schema, path, undefined), description: undefined };
  const key = path.join('.');
  const spelled = [...Object.keys(spellings[key] ?? {}), ...(key === 'algorithm.adv_estimator' ? vagenEstimators : [])];
  if (rest.enum) rest.enum = [...rest.enum, ...spelled];
  if (rest.prefixItems) delete rest.items; // `items: false` and prefixItems are unknown to draft-7 readers
  // zod adds the safe-integer bounds to every integer; the document omits them.
  if (rest.maximum === Number.MAX_SAFE_INTEGER) delete rest.maximum;
  if (rest.minimum === -Number.MAX_SAFE_INTEGER) delete rest.minimum;
  return rest;
}

function addIgnored(root: JsonSchema, path: readonly string[], steers: string): void {
  let map = root;
  for (const part of path.slice(0, -1)) {
    map.properties ??= {};
    map = map.properties[part] ??= { type: 'object', properties: {}, additionalProperties: false };
  }
  const ignored: JsonSchema = { description: `Ignored here: it configures ${steers}.`, deprecated: true };
  const name = path[path.length - 1];
  if (name === '*') map.additionalProperties = ignored;
  else (map.properties ??= {})[name] = ignored;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
