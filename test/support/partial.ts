// Typed substitutes for values of which a test needs only some fields.

/** Any part of a value, at any depth. */
export type Part<T> = T extends readonly (infer Item)[]
  ? readonly Part<Item>[]
  : T extends object
    ? { [Key in keyof T]?: Part<T[Key]> }
    : T;

/** Returns a part as the complete type. Missing fields are undefined at run time, although the type declares them. */
export function partial<T>(part: Part<T>): T {
  return part as T;
}

/** Returns a value as an unrelated type, for patched modules, private fields and golden rows. */
export function reinterpret<T>(value: unknown): T {
  return value as T;
}
