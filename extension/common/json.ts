// Parses JSON of unknown origin, such as a truncated file or the output of a process. The text may be invalid, and its
// structure is not checked.

/** Returns the parsed value, or undefined if the text is not valid JSON. */
export function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Whether a value is a JSON object: not an array, not null. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
