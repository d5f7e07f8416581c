// What a configuration file may hold, read from media/configuration.schema.json (made of the trainer's own schema), in the form that the help
// in the editor asks for: keys below a path, what a value must be, a text about a key.
import { readFileSync } from 'node:fs';
import { expectation, schemaAt, type JsonSchema } from '../../protocol/json-schema';

/** The way to a value: keys of maps and positions in lists. */
export type KeyPath = readonly (string | number)[];

/** `a.b[2]` for ['a', 'b', 2]. */
export const keyText = (path: KeyPath): string =>
  path.map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i > 0 ? '.' : ''}${part}`)).join('');

/** Reads the schema; values that refer to other keys, which any value may, are left out of it. Throws where the file is missing. */
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

/** The keys that a map at `path` may have, in the schema's order; none where no map of known keys stands there. */
export function keysAt(root: JsonSchema, path: KeyPath): [string, JsonSchema][] {
  const schema = path.length === 0 ? root : schemaAt(root, path);
  const map = (schema?.anyOf ?? [schema]).find(option => option?.properties);
  return Object.entries(map?.properties ?? {});
}

/** Whether a map stands at a key, as far as the schema tells. */
export const isMapSchema = (schema: JsonSchema): boolean =>
  (schema.anyOf ?? [schema]).some(({ properties, additionalProperties, type }) =>
    Boolean(properties ?? (type === 'object' && additionalProperties)),
  );

/** The values that a schema names one by one: choices, true and false, null. */
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

/** Markdown about the key at `path`: what its value must be, its default, what it means. */
export function describeKey(path: KeyPath, schema: JsonSchema): string {
  const about = [`**${keyText(path)}**`];
  if (!schema.deprecated && !isMapSchema(schema)) about.push(expectation(schema));
  const fallback = schema.default === undefined ? [] : [`Default: \`${defaultText(schema)}\``];
  const sentence = schema.description ?? schema.anyOf?.find(option => option.description)?.description ?? '';
  return [about.join(' · '), sentence, ...fallback].filter(text => text !== '').join('\n\n');
}

/** The default as YAML has it on one line. */
export const defaultText = ({ default: value }: JsonSchema): string =>
  typeof value === 'string' ? value : JSON.stringify(value);
