// The forms that the cases of `ragen algo` are made of, and what is checked between their parts: rows by token, masks, ids of groups.
// Contract: an error begins with the key that is wrong, so that the case's place can be put before it.
import { z } from 'zod';
import { UserError } from '../../protocol/user-error';

/** What a case gives. Throws a UserError or, for the wrong form, zod's error. */
export type AlgoFunction = (input: unknown) => unknown;

export const numbers = z.array(z.number());
export const rows = z.array(numbers);
export const maskRows = z.array(z.array(z.union([z.literal([0, 1]), z.boolean()])));
export const ids = z.array(z.union([z.string(), z.number()]));
export const index = z.int().min(0);

/** A function whose cases have this form. */
export const define =
  <Form extends z.ZodType>(form: Form, evaluate: (input: z.output<Form>) => unknown): AlgoFunction =>
  input =>
    evaluate(form.parse(input));

/** A row's mask; all ones where none is given. */
export const maskOf = (row: readonly (0 | 1 | boolean)[] | undefined, length: number): Uint8Array =>
  row ? Uint8Array.from(row, Number) : new Uint8Array(length).fill(1);

/** Ids of any kind as whole numbers, equal ones alike. */
export function numbered(names: readonly (string | number)[]): number[] {
  const known = [...new Set(names)];
  return names.map(name => known.indexOf(name));
}

/** A float32 with as many digits as it has. */
export const shortest = (x: number): number => Number(x.toPrecision(9));

/** Requires lists as long as the one of `key`. Throws a UserError that names the one that is not. */
export function sameLength(
  key: string,
  list: readonly unknown[],
  others: Record<string, readonly unknown[] | undefined>,
): void {
  for (const [other, given] of Object.entries(others))
    if (given && given.length !== list.length)
      throw new UserError(`${other} has ${given.length} entries, but ${key} has ${list.length}: give as many`);
}

/** As sameLength, for rows of equal lengths. */
export function sameShape(
  key: string,
  list: readonly (readonly unknown[])[],
  others: Record<string, readonly (readonly unknown[])[] | undefined>,
): void {
  sameLength(key, list, others);
  for (const [other, given] of Object.entries(others))
    given?.forEach((row, i) => sameLength(`${key}[${i}]`, list[i], { [`${other}[${i}]`]: row }));
}
