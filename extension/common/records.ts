// Records of known keys. `Object.fromEntries` forgets the keys of its entries; here the compiler keeps them, so that no
// caller has to assert them.

/** Returns the record that holds `valueOf(key)` for each key. */
export function recordOf<Key extends string, Value>(
  keys: readonly Key[],
  valueOf: (key: Key) => Value,
): Record<Key, Value> {
  return Object.fromEntries(keys.map(key => [key, valueOf(key)])) as Record<Key, Value>;
}
