// JSON that may be none, or not what was expected: what was read from a file or a process that somebody may have cut off.

/** The value of a JSON text, `undefined` where it is none. */
export function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Whether a value is an object of JSON: no list, not null. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
