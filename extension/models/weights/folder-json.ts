// Reads the text and JSON files of a model folder.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { readRegularSync } from '../../node/regular-file';

/** Reads a text file. Throws a UserError if it cannot be read. */
export function readText(folder: string, name: string): string {
  try {
    return readRegularSync(join(folder, name)).toString('utf8');
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(
      `${folder}: cannot read ${name} (${(error as NodeJS.ErrnoException).code}): choose a model folder that contains this file`,
    );
  }
}

/** Reads a JSON file. Throws a UserError if the file is missing or is not JSON. */
export function readJson(folder: string, name: string): Record<string, unknown> {
  const text = readText(folder, name);
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new UserError(
      `${join(folder, name)}: the file is not valid JSON (${oneLine(error)}): download the file again`,
    );
  }
}

/**
 * Returns the error's message with white space collapsed, because the parser quotes its input including line breaks.
 */
const oneLine = (error: unknown): string => (error as Error).message.replace(/\s+/g, ' ');

/** Like `readJson`, but returns undefined if the file does not exist. */
export function optionalJson(folder: string, name: string): Record<string, unknown> | undefined {
  return existsSync(join(folder, name)) ? readJson(folder, name) : undefined;
}
