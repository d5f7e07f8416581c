// Looks up the schema of a configuration key, and describes the value that the schema expects. Supports the subset of
// JSON schema that configurations use. Used by the trainer, which generates media/configuration.schema.json and
// validates configurations, and by the editor's help in configuration files.

/** A schema, or part of a schema (draft 2020-12). */
export interface JsonSchema {
  /** A list of types if the value may also be null. */
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  prefixItems?: JsonSchema[];
  anyOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  pattern?: string;
  /** Set for a key that is accepted but has no effect. */
  deprecated?: boolean;
  $ref?: string;
}

/** Returns the schema of the key at `path`, or undefined if there is no such key. */
export function schemaAt(root: JsonSchema, path: readonly PropertyKey[]): JsonSchema | undefined {
  let schema: JsonSchema | undefined = root;
  for (const part of path) {
    const options: JsonSchema[] = schema?.anyOf ?? (schema ? [schema] : []);
    schema = options.map(option => below(option, part)).find(found => found !== undefined);
  }
  return schema;
}

function below(schema: JsonSchema, part: PropertyKey): JsonSchema | undefined {
  const key = String(part);
  if (schema.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  if (typeof schema.additionalProperties === 'object') return schema.additionalProperties;
  return schema.prefixItems?.[Number(key)] ?? schema.items;
}

/** Describes the expected value: `an integer ≥ 1`, `one of top_p, min_p`. */
export function expectation(schema: JsonSchema): string {
  if (schema.anyOf) return schema.anyOf.map(expectation).join(' or ');
  if (Array.isArray(schema.type)) return schema.type.map(type => expectation({ ...schema, type })).join(' or ');
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum) return schema.enum.length === 1 ? String(schema.enum[0]) : `one of ${schema.enum.join(', ')}`;
  if (schema.type === 'boolean') return 'true or false';
  if (schema.type === 'null') return 'null';
  if (schema.type === 'string') {
    const ending = /^\^.*\\(\.[a-z]+)\$$/.exec(schema.pattern ?? '')?.[1];
    if (ending !== undefined) return `a path that ends in ${ending}`;
    return schema.minLength ? 'a text that is not empty' : 'a text';
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    const bounds = [
      bound('>', schema.exclusiveMinimum),
      bound('≥', schema.minimum),
      bound('<', schema.exclusiveMaximum),
      bound('≤', schema.maximum),
    ].filter(text => text !== '');
    return [schema.type === 'integer' ? 'an integer' : 'a number', bounds.join(' and ')].filter(Boolean).join(' ');
  }
  if (schema.prefixItems)
    return `a list of ${schema.prefixItems.length} values (${schema.prefixItems.map(expectation).join('; ')})`;
  if (schema.type === 'array')
    return schema.items ? `a list in which each entry is ${expectation(schema.items)}` : 'a list';
  return 'a map of keys';
}

const bound = (sign: string, value: number | undefined): string =>
  value === undefined || Math.abs(value) >= Number.MAX_SAFE_INTEGER ? '' : `${sign} ${value}`;
