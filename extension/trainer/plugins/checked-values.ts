// Checks the values that plug-ins return, because their code is not trusted to return what its type says: a value may
// have another form or length, or contain numbers that are not finite. Each error names the file, the function, the
// place of the value and the value. Numbers are copied, so a checked value cannot change.
import { inspect } from 'node:util';
import { isRecord } from '../../common/json';
import type { PluginDescription } from '../../protocol/plugin-link';
import { PluginError } from '../../plugins/client/plugin-runner';

/** A loaded plug-in whose functions can be called. */
export interface CallablePlugin {
  /** Path as it is configured. */
  path: string;
  description: PluginDescription;
  /** Calls a function. The value must be checked. @throws PluginError if the call fails */
  call(name: string, ...args: unknown[]): Promise<unknown>;
}

/** The function whose value is checked, for messages. */
export interface Called {
  /** Path of the plug-in as it is configured. */
  path: string;
  function: string;
}

/** Returns an error for an invalid value. `what` is, for example, 'returned NaN for sample 3'. */
export const badValue = ({ path, function: name }: Called, what: string, remedy: string): PluginError =>
  new PluginError(path, name, { what, remedy });

/** Formats any value, which may contain cycles or other types than JSON, for a message in at most 80 characters. */
export function shown(value: unknown): string {
  if (ArrayBuffer.isView(value)) return `a ${value.constructor.name}`;
  const text = inspect(value, { depth: 1, breakLength: Infinity, maxArrayLength: 8, maxStringLength: 80 });
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/**
 * Returns the numbers of a list as an array of the given type.
 * @param what plural noun for the numbers, such as 'advantages'
 * @param one names the number at an index, such as 'sample 3'
 * @throws PluginError if the value is no list of `length` finite numbers
 */
export function checkedNumbers<Row extends Float32Array | Float64Array>(
  called: Called,
  value: unknown,
  row: Row,
  what: string,
  one: (index: number) => string,
): Row {
  const { length } = row;
  if (!isList(value))
    throw badValue(called, `returned ${shown(value)} as ${what}`, `return a list of ${length} numbers`);
  if (value.length !== length)
    throw badValue(called, `returned ${value.length} ${what} instead of ${length}`, `return ${length} numbers`);
  for (let index = 0; index < length; index++) {
    const number = value[index];
    if (typeof number === 'number') row[index] = number;
    // A finite number beyond the range of float32 becomes infinite in a Float32Array.
    if (typeof number !== 'number' || !Number.isFinite(row[index]))
      throw badValue(called, `returned ${shown(number)} for ${one(index)}`, 'return finite numbers');
  }
  return row;
}

const isList = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** Returns a list of exactly `length` entries. @throws PluginError if the value is another one */
export function checkedList(called: Called, value: unknown, length: number, what: string): unknown[] {
  if (!Array.isArray(value) || value.length !== length)
    throw badValue(
      called,
      `returned ${Array.isArray(value) ? `${value.length} ${what}` : `${shown(value)} as ${what}`} instead of ${length}`,
      `return a list of ${length} ${what}`,
    );
  return value;
}

/** Returns an object. @throws PluginError if the value is another one */
export function checkedRecord(called: Called, value: unknown, remedy: string): Record<string, unknown> {
  if (!isRecord(value)) throw badValue(called, `returned ${shown(value)}`, remedy);
  return value;
}
