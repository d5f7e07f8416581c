// Reads the input of commands that take an array of cases, from a JSON file or standard input.
import { readFileSync } from 'node:fs';
import { text as readStream } from 'node:stream/consumers';
import { UserError } from '../../common/user-error';
import { shown } from '../../trainer/config/config-error';

/** Returns the name of the source given with `--input`, for error messages. */
export const inputName = (input: string): string => (input === '-' ? 'standard input' : input);

/** Reads the text of `--input`: a file, or standard input for `-`. Throws a UserError. */
export async function readInput(input: string): Promise<string> {
  if (input === '-') return readStream(process.stdin);
  try {
    return readFileSync(input, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UserError(`${input} cannot be read (${code ?? message}): give an existing JSON file with --input`);
  }
}

/** Parses the cases of a JSON text; `file` is used in errors only. Throws a UserError. */
export function parseCases(text: string, file: string): unknown[] {
  let cases: unknown;
  try {
    cases = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new UserError(
      `${file} is not JSON (${(error as Error).message.replaceAll(/\s+/g, ' ')}): give an array of cases`,
    );
  }
  if (!Array.isArray(cases))
    throw new UserError(`${file} contains ${shown(cases)}, not an array of cases: put the case into [ ]`);
  return cases;
}
