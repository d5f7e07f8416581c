// Values that are made when they are first needed, so that a process does not spend its start on values that it may
// never use.

/** Returns a function that calls `make` at its first call and returns the same value at every call. */
export function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
