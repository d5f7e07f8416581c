// Builds records with known keys. The type of `Object.fromEntries` loses the keys; `recordOf` preserves them, so
// callers need no type assertion.

/** Returns a record that maps each key to `valueOf(key)`. */
export function recordOf<Key extends string, Value>(
  keys: readonly Key[],
  valueOf: (key: Key) => Value,
): Record<Key, Value> {
  return Object.fromEntries(keys.map(key => [key, valueOf(key)])) as Record<Key, Value>;
}
