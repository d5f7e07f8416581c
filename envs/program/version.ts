// The version of a program: a checksum of its files.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/**
 * Returns the version of a program: the first 16 hex digits of the SHA-256 of its files. Undefined without files.
 * @throws Error if a file cannot be read
 */
export function programVersion(files: readonly string[]): string | undefined {
  if (files.length === 0) return undefined;
  const hash = createHash('sha256');
  for (const file of files) hash.update(createHash('sha256').update(readFileSync(file)).digest());
  return hash.digest('hex').slice(0, 16);
}
