// Finds errors in a configuration file without reading other files: invalid YAML, unknown keys, invalid values, and
// keys without effect. The messages have the same wording as the trainer's messages. The trainer's check is
// authoritative.
import { isAlias, isMap, isPair, isScalar, isSeq, type Node } from 'yaml';
import { isRecord } from '../../common/json';
import { expectation, schemaAt, type JsonSchema } from '../../common/json-schema';
import { nearest } from '../../common/suggest';
import { yamlDocument } from '../../common/yaml-text';
import { isMapSchema, keysAt, keyText, namedValues, type KeyPath } from './configuration-schema';

/** An error in the range [from, to) of a text, in characters. */
export interface Mistake {
  /** Key such as `a.b[2]`; empty for invalid YAML. */
  key: string;
  message: string;
  from: number;
  to: number;
  /** Whether the mistake is a key without effect, which is shown as a hint instead of an error. */
  idle?: boolean;
  /** Suggested replacement. */
  instead?: string;
}

/** Returns the errors of a text, in text order. */
export function mistakesIn(text: string, root: JsonSchema): Mistake[] {
  const document = yamlDocument(text, { prettyErrors: false, logLevel: 'silent' });
  const mistakes: Mistake[] = document.errors.map(({ pos: [from, to], message }) => ({
    key: '',
    message: `the YAML is not valid: ${message.split('\n', 1)[0]}`,
    from,
    to: Math.max(to, from + 1),
  }));

  if (mistakes.length > 0) return mistakes; // after a syntax error, the parsed tree is unreliable

  const report = (node: Node, path: KeyPath, rest: Omit<Mistake, 'key' | 'from' | 'to'>): void => {
    const [from, to] = node.range ?? [0, 1];
    mistakes.push({ key: keyText(path), from, to: Math.max(to, from + 1), ...rest });
  };

  const check = (node: unknown, path: KeyPath, schema: JsonSchema, key?: Node): void => {
    if (isAlias(node)) return; // the anchor's node is checked at its definition
    if (isScalar(node) && typeof node.value === 'string' && node.value.includes('${')) return;
    if (isMap(node) && isMapSchema(schema)) {
      for (const pair of node.items) if (isPair(pair) && isScalar(pair.key)) checkKey(pair.key, pair.value, path);
      return;
    }
    if (isSeq(node)) {
      const list = (schema.anyOf ?? [schema]).find(
        ({ type, items, prefixItems }) => type === 'array' || items || prefixItems,
      );
      if (list) {
        const inner = (i: number): JsonSchema | undefined => list.prefixItems?.[i] ?? list.items;
        node.items.forEach((item, i) => check(item, [...path, i], inner(i) ?? {}));
        return;
      }
    }
    const value = isScalar(node) ? node.value : isMap(node) || isSeq(node) ? (node.toJSON() as unknown) : null;
    if (accepts(schema, value)) return;
    const instead = typeof value === 'string' ? nearest(value, namedValues(schema)) : undefined;
    const at = isScalar(node) && node.range && node.range[1] > node.range[0] ? node : (key ?? (node as Node));
    report(at, path, {
      message: `${keyText(path)} is ${shown(value)}: use ${expectation(schema)}`,
      ...(instead !== undefined && at === node && { instead }),
    });
  };

  const checkKey = (key: Node & { value: unknown }, value: unknown, path: KeyPath): void => {
    const name = String(key.value);
    if (name === '<<') return;
    const inner = [...path, name];
    const schema = schemaAt(root, inner);
    if (schema?.deprecated) return report(key, inner, { message: schema.description ?? '', idle: true });
    if (schema) return check(value, inner, schema, key);
    const near = nearest(
      name,
      keysAt(root, path).map(([known]) => known),
    );
    const elsewhere = near === undefined ? pathsOf(root, name)[0] : undefined;
    const advice = near ?? elsewhere;
    report(key, inner, {
      message: `${keyText(inner)} is not a known key: ${advice === undefined ? 'remove it' : `did you mean ${advice}?`}`,
      ...(near !== undefined && { instead: near }),
    });
  };

  const { contents } = document;
  if (isMap(contents)) check(contents, [], root);
  return mistakes.sort((a, b) => a.from - b.from);
}

/** Returns the paths of all keys called `name`, as text. */
function pathsOf(schema: JsonSchema, name: string, path: KeyPath = []): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, child]) => [
    ...(key === name && !child.deprecated ? [keyText([...path, key])] : []),
    ...pathsOf(child, name, [...path, key]),
  ]);
}

function accepts(schema: JsonSchema, value: unknown): boolean {
  if (schema.anyOf) return schema.anyOf.some(option => accepts(option, value));
  if (Array.isArray(schema.type)) return schema.type.some(type => accepts({ ...schema, type }, value));
  if (schema.const !== undefined) return schema.const === value;
  if (schema.enum) return schema.enum.includes(value);
  switch (schema.type) {
    case 'null':
      return value === null;
    case 'boolean':
      return typeof value === 'boolean';
    case 'string':
      return (
        typeof value === 'string' &&
        value.length >= (schema.minLength ?? 0) &&
        (schema.pattern === undefined || new RegExp(schema.pattern).test(value))
      );
    case 'integer':
    case 'number':
      return (
        typeof value === 'number' && (schema.type === 'number' || Number.isInteger(value)) && within(schema, value)
      );
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    default:
      return true;
  }
}

const within = ({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonSchema, value: number): boolean =>
  value >= (minimum ?? -Infinity) &&
  value <= (maximum ?? Infinity) &&
  value > (exclusiveMinimum ?? -Infinity) &&
  value < (exclusiveMaximum ?? Infinity);

/** Formats a value for a message: JSON, truncated to 80 characters. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
