// JSON that may be none: what was read from a file or a process that somebody may have cut off.

/** The value of a JSON text, `undefined` where it is none. */
export function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
