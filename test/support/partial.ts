// Stand-ins for values of which a test needs only a part.

/** Any part of a value, at any depth. */
export type Part<T> = T extends readonly (infer Item)[]
  ? readonly Part<Item>[]
  : T extends object
    ? { [Key in keyof T]?: Part<T[Key]> }
    : T;

/** Returns a part as the whole type. What is missing is undefined at run time, whatever its type says. */
export function partial<T>(part: Part<T>): T {
  return part as T;
}

/** Returns a value as an unrelated type: a module that is patched, private fields, golden rows. */
export function reinterpret<T>(value: unknown): T {
  return value as T;
}
