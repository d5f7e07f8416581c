// Equality, text form (str, repr) and JSON of template values, with Python semantics. @huggingface/jinja compares with
// JavaScript's ==, so '' equals false and lists are never equal. The library prints values as JavaScript does (true,
// null, 1). Sources: the data model in the Python language reference, and json.dumps as called by transformers'
// `tojson`. Values are identified by `type`, because the library does not export its classes.

/**
 * A value of the library's runtime. `value` is its content, such as a number, a text, an array of values or a Map of
 * values.
 */
export interface RuntimeValue {
  type: string;
  value: unknown;
}

/**
 * Array values that are tuples in Python. The library stores tuples as arrays, because its loops unpack only arrays.
 */
export const tuples = new WeakSet<RuntimeValue>();
const isTuple = (value: RuntimeValue): boolean => value.type === 'TupleValue' || tuples.has(value);

/**
 * Returns Python's `a == b`. A boolean may equal a number, and a tuple never equals a list. An undefined value equals
 * only an undefined value.
 */
export function equals(a: RuntimeValue, b: RuntimeValue): boolean {
  if (isNumeric(a) && isNumeric(b)) return Number(a.value) === Number(b.value);
  if (isArray(a) && isArray(b))
    return (
      isTuple(a) === isTuple(b) &&
      a.value.length === b.value.length &&
      a.value.every((item, i) => equals(item, b.value[i]))
    );
  if (a.type !== b.type) return false;
  if (isMap(a) && isMap(b)) {
    const other = b.value;
    return (
      a.value.size === other.size &&
      [...a.value].every(([key, item]) => other.has(key) && equals(item, other.get(key)!))
    );
  }
  return a.value === b.value;
}

/**
 * Returns the distinct items, in order of their first occurrence, in linear time. Strings are compared
 * case-insensitively unless `caseSensitive`. @throws Error for items that are unhashable in Python: lists and mappings
 */
export function distinct(items: readonly RuntimeValue[], caseSensitive: boolean): RuntimeValue[] {
  const seen = new Set<unknown>();
  return items.filter(item => {
    const text = !caseSensitive && typeof item.value === 'string' ? item.value.toLowerCase() : undefined;
    const key = text === undefined ? hashKey(item) : textKey(text);
    return !seen.has(key) && seen.add(key);
  });
}

const textKey = (text: string): string => `'${JSON.stringify(text)}`;

/**
 * Returns a key such that two values have equal keys if and only if they are equal in Python. The key is a primitive,
 * or the value object itself if the value equals no other value.
 */
function hashKey(value: RuntimeValue): unknown {
  if (isNumeric(value)) return Number.isNaN(value.value) ? value : Number(value.value);
  if (typeof value.value === 'string') return textKey(value.value);
  if (isArray(value) && isTuple(value)) {
    const keys = value.value.map(hashKey);
    return keys.some(key => typeof key === 'object')
      ? value
      : `(${keys.map(key => `${typeof key} ${String(key)}`).join(',')})`;
  }
  if (isArray(value) || isMap(value)) throw new Error(`unhashable type: '${isMap(value) ? 'dict' : 'list'}'`);
  return value.type === 'NullValue' || value.type === 'UndefinedValue' ? value.type : value;
}

/** Returns Python's `str(value)`; Jinja's undefined value gives an empty text. */
export function str(value: RuntimeValue): string {
  if (typeof value.value === 'string') return value.value;
  return value.type === 'UndefinedValue' ? '' : repr(value);
}

/** Returns Python's `repr(value)`. */
function repr(value: RuntimeValue): string {
  if (isArray(value)) {
    const items = value.value.map(repr);
    if (!isTuple(value)) return `[${items.join(', ')}]`;
    return `(${items.join(', ')}${items.length === 1 ? ',' : ''})`;
  }
  if (value.type === 'NamespaceValue') return `<Namespace ${reprOfMap(value)}>`;
  if (isMap(value)) return reprOfMap(value);
  switch (value.type) {
    case 'StringValue':
      return quoted(value.value as string);
    case 'BooleanValue':
      return value.value ? 'True' : 'False';
    case 'NullValue':
      return 'None';
    case 'UndefinedValue':
      return 'Undefined';
    case 'FloatValue':
      return floatRepr(value.value as number);
    case 'IntegerValue':
      return Number.isInteger(value.value) ? BigInt(value.value as number).toString() : String(value.value);
    default:
      throw new Error(`a ${value.type} cannot be written as text`);
  }
}

const reprOfMap = (value: RuntimeValue): string =>
  `{${[...(value.value as Map<string, RuntimeValue>)].map(([key, item]) => `${quoted(key)}: ${repr(item)}`).join(', ')}}`;

export interface JsonOptions {
  indent?: number | null;
  ensureAscii?: boolean;
  sortKeys?: boolean;
  /** The separator between items, and the separator between a key and its value. */
  separators?: readonly [string, string] | null;
}

/** Returns Python's `json.dumps`; by default, non-ASCII characters are not escaped. An undefined value gives null. */
export function dumps(value: RuntimeValue, options: JsonOptions = {}): string {
  const indent = options.indent ?? null;
  const [between, colon] = options.separators ?? [indent === null ? ', ' : ',', ': '];
  const text = (s: string): string =>
    options.ensureAscii
      ? JSON.stringify(s).replace(/[\x7f-\uffff]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
      : JSON.stringify(s);
  const block = (open: string, items: string[], close: string, level: number): string => {
    if (items.length === 0) return open + close;
    if (indent === null) return open + items.join(between) + close;
    const margin = (depth: number): string => `\n${' '.repeat(indent * depth)}`;
    return open + margin(level + 1) + items.join(between + margin(level + 1)) + margin(level) + close;
  };
  const written = (item: RuntimeValue, level: number): string => {
    if (isArray(item))
      return block(
        '[',
        item.value.map(x => written(x, level + 1)),
        ']',
        level,
      );
    if (isMap(item)) {
      const entries = [...item.value];
      if (options.sortKeys) entries.sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
      return block(
        '{',
        entries.map(([key, x]) => text(key) + colon + written(x, level + 1)),
        '}',
        level,
      );
    }
    switch (item.type) {
      case 'StringValue':
        return text(item.value as string);
      case 'BooleanValue':
        return String(item.value);
      case 'NullValue':
      case 'UndefinedValue':
        return 'null';
      default:
        return repr(item);
    }
  };
  return written(value, 0);
}

export const isArray = (value: RuntimeValue): value is { type: string; value: RuntimeValue[] } =>
  Array.isArray(value.value);
export const isMap = (value: RuntimeValue): value is { type: string; value: Map<string, RuntimeValue> } =>
  value.value instanceof Map;
export const isNumeric = ({ type }: RuntimeValue): boolean =>
  type === 'IntegerValue' || type === 'FloatValue' || type === 'BooleanValue';

/**
 * Returns the shortest digits that round-trip, as JavaScript does. Numbers of at least 1e16 and numbers below 1e-4 have
 * exponent form.
 */
function floatRepr(x: number): string {
  if (Number.isNaN(x)) return 'nan';
  if (!Number.isFinite(x)) return x < 0 ? '-inf' : 'inf';
  if (Object.is(x, -0)) return '-0.0';
  const size = Math.abs(x);
  if (size === 0 || (size >= 1e-4 && size < 1e16)) return Number.isInteger(x) ? `${x}.0` : String(x);
  return x.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

const named: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Returns the text in quotes, with escapes for characters that Python does not print. */
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let out = quote;
  for (const c of text) {
    if (c === quote) out += `\\${c}`;
    else if (c in named) out += named[c];
    else if (c !== ' ' && /[\p{C}\p{Z}]/u.test(c)) out += escaped(c.codePointAt(0)!);
    else out += c;
  }
  return out + quote;
}

function escaped(code: number): string {
  const [letter, width] = code < 0x100 ? ['x', 2] : code < 0x10000 ? ['u', 4] : ['U', 8];
  return `\\${letter}${code.toString(16).padStart(Number(width), '0')}`;
}
