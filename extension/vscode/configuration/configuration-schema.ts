// Queries on the configuration schema in media/configuration.schema.json (generated from the trainer's schema): keys
// below a path, the expected value, and a description of a key.
import { readFileSync } from 'node:fs';
import { expectation, schemaAt, type JsonSchema } from '../../common/json-schema';

/** Path to a value: map keys and list indices. */
export type KeyPath = readonly (string | number)[];

/** Formats a path: `a.b[2]` for ['a', 'b', 2]. */
export const keyText = (path: KeyPath): string =>
  path.map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i > 0 ? '.' : ''}${part}`)).join('');

/**
 * Reads the schema and removes all `$ref` alternatives. In the file, every key has a `$ref` as one alternative, because
 * its value can be a reference to another key. Throws if the file is missing.
 */
export const readConfigurationSchema = (file: string): JsonSchema =>
  withoutReferences(JSON.parse(readFileSync(file, 'utf8')) as JsonSchema);

function withoutReferences(schema: JsonSchema): JsonSchema {
  const { anyOf, properties, additionalProperties, ...rest } = schema;
  const options = anyOf?.filter(option => option.$ref === undefined).map(withoutReferences);
  const inner = Object.entries(properties ?? {}).map(([name, child]) => [name, withoutReferences(child)]);
  return {
    ...(options?.length === 1 && options[0]),
    ...(options && options.length > 1 && { anyOf: options }),
    ...(properties && { properties: Object.fromEntries(inner) as Record<string, JsonSchema> }),
    ...(additionalProperties !== undefined && {
      additionalProperties: typeof additionalProperties === 'object' ? withoutReferences(additionalProperties) : false,
    }),
    ...rest,
  };
}

/** Returns the keys of the map at `path`, in schema order; empty if the schema has no map with known keys at `path`. */
export function keysAt(root: JsonSchema, path: KeyPath): [string, JsonSchema][] {
  const schema = path.length === 0 ? root : schemaAt(root, path);
  const map = (schema?.anyOf ?? [schema]).find(option => option?.properties);
  return Object.entries(map?.properties ?? {});
}

/** Whether the schema describes a map. */
export const isMapSchema = (schema: JsonSchema): boolean =>
  (schema.anyOf ?? [schema]).some(({ properties, additionalProperties, type }) =>
    Boolean(properties ?? (type === 'object' && additionalProperties)),
  );

/**
 * Returns the values that a schema names: its choices, `true` and `false` for a boolean, and `null` if it is permitted.
 */
export function namedValues(schema: JsonSchema): string[] {
  const values = (schema.anyOf ?? [schema]).flatMap(({ enum: choices, const: only, type, items }) => {
    if (choices) return choices.map(String);
    if (only !== undefined) return [String(only)];
    if (type === 'boolean') return ['true', 'false'];
    if (type === 'null' || type?.includes('null')) return ['null'];
    return items?.enum ? items.enum.map(String) : [];
  });
  return [...new Set(values)];
}

/** Returns Markdown about the key at `path`: expected value, meaning and default. */
export function describeKey(path: KeyPath, schema: JsonSchema): string {
  const about = [`**${keyText(path)}**`];
  if (!schema.deprecated && !isMapSchema(schema)) about.push(expectation(schema));
  const fallback = schema.default === undefined ? [] : [`Default: \`${defaultText(schema)}\``];
  const sentence = schema.description ?? schema.anyOf?.find(option => option.description)?.description ?? '';
  return [about.join(' · '), sentence, ...fallback].filter(text => text !== '').join('\n\n');
}

/** Formats the default as one line of YAML. */
export const defaultText = ({ default: value }: JsonSchema): string =>
  typeof value === 'string' ? value : JSON.stringify(value);
