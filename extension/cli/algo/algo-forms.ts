// Building blocks for the input schemas of `ragen algo` (rows by token, masks, group ids) and checks across keys.
// Contract: an error begins with the wrong key, so that the location of the case can be prepended.
import { z } from 'zod';
import { UserError } from '../../common/user-error';

/** Evaluates a case. Throws a UserError or, for an invalid case, zod's error. */
export type AlgoFunction = (input: unknown) => unknown;

export const numbers = z.array(z.number());
export const rows = z.array(numbers);
export const maskRows = z.array(z.array(z.union([z.literal([0, 1]), z.boolean()])));
export const ids = z.array(z.union([z.string(), z.number()]));
export const index = z.int().min(0);

/** A function whose cases have this schema. */
export const define =
  <Form extends z.ZodType>(form: Form, evaluate: (input: z.output<Form>) => unknown): AlgoFunction =>
  input =>
    evaluate(form.parse(input));

/** A row's mask; all ones if none is given. */
export const maskOf = (row: readonly (0 | 1 | boolean)[] | undefined, length: number): Uint8Array =>
  row ? Uint8Array.from(row, Number) : new Uint8Array(length).fill(1);

/** Maps ids of any kind to integers; equal ids get equal numbers. */
export function numbered(names: readonly (string | number)[]): number[] {
  const known = [...new Set(names)];
  return names.map(name => known.indexOf(name));
}

/** A float32 rounded to the nine digits that identify it. */
export const shortest = (x: number): number => Number(x.toPrecision(9));

/** Requires that lists are as long as that of `key`. Throws a UserError naming one that is not. */
export function sameLength(
  key: string,
  list: readonly unknown[],
  others: Record<string, readonly unknown[] | undefined>,
): void {
  for (const [other, given] of Object.entries(others))
    if (given && given.length !== list.length)
      throw new UserError(`${other} has ${given.length} entries, but ${key} has ${list.length}: give as many`);
}

/** Like sameLength, also for the rows. */
export function sameShape(
  key: string,
  list: readonly (readonly unknown[])[],
  others: Record<string, readonly (readonly unknown[])[] | undefined>,
): void {
  sameLength(key, list, others);
  for (const [other, given] of Object.entries(others))
    given?.forEach((row, i) => sameLength(`${key}[${i}]`, list[i], { [`${other}[${i}]`]: row }));
}
