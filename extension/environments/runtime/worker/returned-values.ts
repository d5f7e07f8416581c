// Formats and copies values that environment code has returned. A value may be hostile: it may override its methods,
// and its getters may throw or return a different value at each read. Copying reads each property once and calls no
// method of the value.
import { types } from 'node:util';
import { largest, longestKey } from '../../../protocol/environment-message-bounds';

const deepest = 8;

const { stringify } = JSON;
const { isArray } = Array;
const { getPrototypeOf, keys, prototype: plain } = Object;
const { toString: toText } = plain;

/** Truncates strings before they are formatted, because a string may be a gigabyte long. */
const cutText = (_key: string, value: unknown): unknown => (typeof value === 'string' ? value.slice(0, 81) : value);

/** Formats a value for an error message in at most 80 characters. */
export function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  let text: unknown;
  try {
    text =
      typeof value === 'string' || (typeof value === 'object' && value !== null)
        ? stringify(typeof value === 'string' ? value.slice(0, 81) : value, cutText)
        : String(value);
  } catch {
    text = undefined;
  }
  const shortened = typeof text === 'string' ? text : kindOf(value);
  return shortened.length > 80 ? `${shortened.slice(0, 79)}…` : shortened;
}

function kindOf(value: unknown): string {
  try {
    return toText.call(value);
  } catch {
    return `a ${typeof value} whose properties throw`;
  }
}

const notPlain = new WeakSet<Error>();
/**
 * Returns true if `plainValue` threw this error because a value is not plain data. Returns false if code of the value,
 * such as a getter, threw the error.
 */
export const isNotPlain = (error: unknown): error is TypeError => notPlain.has(error as Error);

function refuse(what: string): never {
  const error = new TypeError(what);
  notPlain.add(error);
  throw error;
}

/**
 * Copies plain data: numbers, strings, booleans, null, arrays, objects, byte arrays.
 * @throws TypeError if a value has another type (a function, a cycle, a Map), or if the number of values and characters
 * exceeds `largest`; the message contains the value's path
 */
export function plainValue(value: unknown, path = '', depth = 0, room = { left: largest }): unknown {
  const take = (size: number) => {
    room.left -= size;
    if (!(room.left >= 0))
      refuse(`the value has more than ${largest} values and characters (at ${path || 'the top level'})`);
  };
  take(typeof value === 'string' ? 1 + value.length : 1);
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || depth > deepest)
    refuse(`${path || 'the value'} is ${depth > deepest ? 'nested too deep' : `a ${typeof value}`}`);
  const below = (key: string | number, item: unknown) =>
    plainValue(item, path === '' ? `${key}` : `${path}.${key}`, depth + 1, room);
  if (types.isUint8Array(value) || types.isTypedArray(value)) {
    const length = elementsOf(value);
    take(length);
    return types.isUint8Array(value) ? bytesOf(value) : copied(value, length, below);
  }
  if (isArray(value)) {
    const { length } = value;
    take(length);
    return copied(value, length, below);
  }
  const prototype: unknown = getPrototypeOf(value);
  if (prototype !== plain && prototype !== null) refuse(`${path || 'the value'} is a ${className(value)}`);
  const copy: Record<string, unknown> = {};
  for (const key of keys(value)) {
    if (key.length > longestKey) refuse(`a key has ${key.length} characters, more than ${longestKey} (${shown(key)})`);
    take(key.length);
    set(copy, key, below(key, (value as Record<string, unknown>)[key]));
  }
  return copy;
}

const { defineProperty } = Reflect;

/** Sets an own property, even if its key is `__proto__`. */
function set(object: object, key: PropertyKey, value: unknown): void {
  defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Copies the elements 0 … length − 1 of a list, reading each once. */
export function copied<T>(list: ArrayLike<unknown>, length: number, copy: (index: number, item: unknown) => T): T[] {
  const copies: T[] = [];
  for (let i = 0; i < length; i++) copies.push(copy(i, list[i]));
  return copies;
}

/** Copies bytes. Ignores overridden methods of subclasses. */
export const bytesOf = (value: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(value);

const lengthOf = Object.getOwnPropertyDescriptor(getPrototypeOf(Uint8Array.prototype) as object, 'length')!.get!;

/** Returns the number of elements of a typed array. Ignores overridden properties. */
export const elementsOf = (value: object): number => Reflect.apply(lengthOf, value, []) as number;

function className(value: object): string {
  const name: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof name === 'string' && name !== '' ? name.slice(0, 80) : 'class instance';
}
