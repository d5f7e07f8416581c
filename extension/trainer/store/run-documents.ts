// JSON documents of a run folder: reading with a schema, their text, and signatures. Reads are bounded and follow no
// link; errors are UserErrors that name the file.
import { join } from 'node:path';
import { ZodError, type z } from 'zod';
import { UserError } from '../../common/user-error';
import { replaceFile, storeError } from '../../node/files';
import { readRunFileSync } from '../../node/run-file';

/** A document's text. */
export const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;

/**
 * Writes a signature. A run that cannot be signed, because the user's storage is not writable, works like others, but
 * executing its code requires confirmation.
 */
export async function writeSignature(file: string, text: () => string): Promise<void> {
  let signature: string;
  try {
    signature = text();
  } catch (error) {
    process.stderr.write(
      `note: ${(error as Error).message}; until then the run is not signed, and resuming it asks for confirmation\n`,
    );
    return;
  }
  await replaceFile(file, signature);
}

/** Bytes of a file of a run folder. Errors are UserErrors. */
export function bytesIn(folder: string, name: string): Buffer {
  try {
    return readRunFileSync(folder, name);
  } catch (error) {
    throw storeError('read', join(folder, name), error);
  }
}

/** A document of a run folder, checked against its schema. */
export const readJson = <Schema extends z.ZodType>(folder: string, name: string, schema: Schema): z.infer<Schema> =>
  parsed(join(folder, name), bytesIn(folder, name).toString('utf8'), schema);

/** The value of a document's text. @throws UserError if it is damaged */
export function parsed<Schema extends z.ZodType>(file: string, text: string, schema: Schema): z.infer<Schema> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new UserError(`store: ${file} is damaged (${reasonOf(error)}): restore it or remove the run`, {
      cause: error,
    });
  }
}

/** One line about what is wrong with a document. */
function reasonOf(error: unknown): string {
  if (!(error instanceof ZodError)) return (error as Error).message.split('\n', 1)[0];
  const [{ path, message }] = error.issues;
  return path.length > 0 ? `${path.join('.')}: ${message}` : message;
}
