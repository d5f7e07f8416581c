// Looks at the beginning of files to recognise them, and reads configurations. Everything is bounded: an adapter may be
// given a folder with any contents.
import { isRecord } from '../common/json';
import { UserError } from '../common/user-error';
import { yamlDocument } from '../common/yaml-text';
import { openRegular } from '../node/bounded-file';
import { readRange } from '../node/json-lines';
import { looseRecord } from './json-rows';
import type { SourceFolder } from './source-folder';

/** Maximum bytes of a first line. */
export const mostPeekBytes = 2 ** 24;

/** Returns the object in the first line of a file; undefined if the line is no JSON object or too long. */
export async function firstRecord(source: SourceFolder, name: string): Promise<Record<string, unknown> | undefined> {
  const [line] = (await firstBytes(source, name)).toString('utf8').split('\n', 1);
  return looseRecord(line);
}

/** Returns the beginning of a file, at most 16 MiB; empty if it cannot be read. */
export async function firstBytes(source: SourceFolder, name: string): Promise<Buffer> {
  try {
    const handle = await openRegular(source.at(name), source.root);
    try {
      const { size } = await handle.stat();
      for (let length = 2 ** 16; ; length *= 4) {
        const bytes = await readRange(handle, 0, Math.min(length, size, mostPeekBytes));
        if (bytes.includes(0x0a) || bytes.length >= Math.min(size, mostPeekBytes)) return bytes;
      }
    } finally {
      await handle.close();
    }
  } catch {
    return Buffer.alloc(0); // removed or unreadable: not recognised
  }
}

/** Returns a listed YAML or JSON document as an object; undefined if it is none. */
export async function configIn(source: SourceFolder, name: string): Promise<Record<string, unknown> | undefined> {
  const text = await source.text(name);
  if (text === undefined) return undefined;
  if (name.endsWith('.json')) return looseRecord(text);
  const document = yamlDocument(text, { merge: true });
  if (document.errors.length > 0) return undefined;
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // aliases that expand beyond the limit
  }
}

/** Returns the value at a path such as `trainer.project_name`; undefined if there is none. */
export function configValue(config: Record<string, unknown> | undefined, path: string): unknown {
  let value: unknown = config;
  for (const key of path.split('.')) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** Returns a text at a path of a configuration; undefined for other values. */
export function configText(config: Record<string, unknown> | undefined, path: string): string | undefined {
  const value = configValue(config, path);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns a whole number at a path of a configuration; 0 for other values. */
export function configCount(config: Record<string, unknown> | undefined, path: string): number {
  const value = configValue(config, path);
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
}

/**
 * Returns the only candidate; undefined if there is none. Several candidates are several runs: throws a UserError that
 * lists them.
 */
export function onlyRun(source: SourceFolder, trainer: string, candidates: readonly string[]): string | undefined {
  if (candidates.length <= 1) return candidates[0];
  const shown = candidates.slice(0, 8).map(name => (name === '' ? '.' : name));
  const more = candidates.length > shown.length ? ` and ${candidates.length - shown.length} more` : '';
  throw new UserError(
    `${source.path} contains ${candidates.length} runs of ${trainer} (${shown.join(', ')}${more}): give the path of one of them`,
  );
}

/** Returns a path's last part, without an ending such as `.jsonl`. */
export const stem = (path: string): string => (path.split('/').at(-1) ?? path).replace(/\.[a-z]+$/, '');

/** Throws a UserError if a record names a version of its format that the adapter does not know. */
export function requireVersion(trainer: string, key: string, version: unknown, known: readonly number[]): void {
  if (version === undefined || version === null || known.some(each => each === version)) return;
  throw new UserError(
    `the files of ${trainer} have ${key} ${JSON.stringify(version).slice(0, 100)}, but the known versions are ${known.join(', ')}: update RAGEN Workbench, or write the files with an older ${trainer}`,
  );
}
