// JSON documents of a run folder: reading and validating, formatting, and signing. Reads are limited in size and follow
// no links. Errors are UserErrors that name the file.
import { join } from 'node:path';
import { ZodError, type z } from 'zod';
import { UserError } from '../../common/user-error';
import { replaceFile, storeError } from '../../node/files';
import { readRunFileSync } from '../../node/read-run-file';

/** Formats a value as the text of a document. */
export const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;

/**
 * Writes a signature. If the signature cannot be computed because the user's storage is not writable, a note is printed
 * and the run stays unsigned. An unsigned run trains normally, but the user must confirm before it is resumed.
 */
export async function writeSignature(file: string, text: () => string): Promise<void> {
  let signature: string;
  try {
    signature = text();
  } catch (error) {
    process.stderr.write(
      `note: ${(error as Error).message}; the run is therefore not signed, and you must confirm before it is resumed\n`,
    );
    return;
  }
  await replaceFile(file, signature);
}

/** Reads a file of a run folder. Errors are UserErrors. */
export function bytesIn(folder: string, name: string): Buffer {
  try {
    return readRunFileSync(folder, name);
  } catch (error) {
    throw storeError('read', join(folder, name), error);
  }
}

/** Reads a document of a run folder and validates it against its schema. */
export const readJson = <Schema extends z.ZodType>(folder: string, name: string, schema: Schema): z.infer<Schema> =>
  parsed(join(folder, name), bytesIn(folder, name).toString('utf8'), schema);

/** Parses and validates the text of a document. @throws UserError if it is damaged */
export function parsed<Schema extends z.ZodType>(file: string, text: string, schema: Schema): z.infer<Schema> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new UserError(`store: ${file} is damaged (${reasonOf(error)}): restore it or remove the run`, {
      cause: error,
    });
  }
}

/** Returns one line that describes why a document is invalid. */
function reasonOf(error: unknown): string {
  if (!(error instanceof ZodError)) return (error as Error).message.split('\n', 1)[0];
  const [{ path, message }] = error.issues;
  return path.length > 0 ? `${path.join('.')}: ${message}` : message;
}
