// Building blocks for the input schemas of `ragen algo` (rows with one number per token, masks, group ids), and checks
// that compare several keys. Contract: an error message begins with the invalid or missing key. The caller prepends the
// location of the case in the input.
import { z } from 'zod';
import { UserError } from '../../common/user-error';

/** Evaluates a case. Throws a UserError or, for an invalid case, zod's error. */
export type AlgoFunction = (input: unknown) => unknown;

export const numbers = z.array(z.number());
export const rows = z.array(numbers);
export const maskRows = z.array(z.array(z.union([z.literal([0, 1]), z.boolean()])));
export const ids = z.array(z.union([z.string(), z.number()]));
export const index = z.int().min(0);

/** Returns an AlgoFunction that validates each case against `form` before `evaluate` receives it. */
export const define =
  <Form extends z.ZodType>(form: Form, evaluate: (input: z.output<Form>) => unknown): AlgoFunction =>
  input =>
    evaluate(form.parse(input));

/** Returns a row's mask as bytes. If the row has no mask, all `length` bytes are 1. */
export const maskOf = (row: readonly (0 | 1 | boolean)[] | undefined, length: number): Uint8Array =>
  row ? Uint8Array.from(row, Number) : new Uint8Array(length).fill(1);

/** Maps ids of any kind to integers; equal ids get equal numbers. */
export function numbered(names: readonly (string | number)[]): number[] {
  const known = [...new Set(names)];
  return names.map(name => known.indexOf(name));
}

/** Rounds a float32 to nine significant digits, which identify every float32. */
export const shortest = (x: number): number => Number(x.toPrecision(9));

/**
 * Checks that every list in `others` is as long as `list`. Throws a UserError that names the first list whose length
 * differs.
 */
export function sameLength(
  key: string,
  list: readonly unknown[],
  others: Record<string, readonly unknown[] | undefined>,
): void {
  for (const [other, given] of Object.entries(others))
    if (given && given.length !== list.length)
      throw new UserError(
        `"${other}" has ${given.length} entries, but "${key}" has ${list.length}: give both the same number of entries`,
      );
}

/**
 * Checks that every array of rows in `others` has as many rows as `list`, and that each row is as long as the row of
 * `list` with the same index.
 */
export function sameShape(
  key: string,
  list: readonly (readonly unknown[])[],
  others: Record<string, readonly (readonly unknown[])[] | undefined>,
): void {
  sameLength(key, list, others);
  for (const [other, given] of Object.entries(others))
    given?.forEach((row, i) => sameLength(`${key}[${i}]`, list[i], { [`${other}[${i}]`]: row }));
}
