// Values that environment code hands out: shown in a sentence, and copied so that they survive the way to the trainer.
import { largest, longestKey } from '../protocol/environment-bounds';

const deepest = 8;

/** As much of a text as a sentence can show: a longer one may have a gigabyte. */
const cutText = (_key: string, value: unknown): unknown => (typeof value === 'string' ? value.slice(0, 81) : value);

/** A value as it reads in an error's sentence, at most 80 characters. */
export function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  let text: string;
  try {
    text =
      typeof value === 'string' || (typeof value === 'object' && value !== null)
        ? JSON.stringify(value, cutText)
        : String(value);
  } catch {
    text = Object.prototype.toString.call(value);
  }
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/**
 * A copy made of plain data: numbers, texts, booleans, null, arrays, objects, byte arrays.
 * @throws TypeError naming the path of a value that is none of these (a function, a cycle, a Map), or where there are too many.
 */
export function plainValue(value: unknown, path = '', depth = 0, room = { left: largest }): unknown {
  room.left -= 1 + sizeOf(value);
  if (room.left < 0)
    throw new TypeError(`there is more than ${largest} values and characters (at ${path || 'the top'})`);
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  if (value === undefined) return undefined;
  if (typeof value !== 'object' || depth > deepest)
    throw new TypeError(`${path || 'the value'} is ${depth > deepest ? 'nested too deep' : `a ${typeof value}`}`);
  if (value instanceof Uint8Array) return value.slice();
  const below = (key: string | number, item: unknown) =>
    plainValue(item, path === '' ? `${key}` : `${path}.${key}`, depth + 1, room);
  if (Array.isArray(value)) return value.map((item, i) => below(i, item));
  if (ArrayBuffer.isView(value))
    return Array.from(value as unknown as ArrayLike<number | bigint>, (item, i) => below(i, item));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    throw new TypeError(`${path || 'the value'} is a ${value.constructor?.name ?? 'class instance'}`);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      room.left -= key.length; // `below` looks whether it was enough
      if (key.length > longestKey)
        throw new TypeError(`a key has ${key.length} characters, more than ${longestKey} (${shown(key)})`);
      return [key, below(key, item)];
    }),
  );
}

/** Characters of a text, elements of an array. */
const sizeOf = (value: unknown): number =>
  typeof value === 'string' || Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value)
    ? (value as { length: number }).length
    : 0;
