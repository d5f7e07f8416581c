// Uses the bundle's source map to map a stack trace to a location in the user's source.
import { SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, resolve } from 'node:path';
import type { Bundle } from './build/build';

/**
 * Returns `file:line`, with an absolute path, of the innermost frame in the bundle; undefined if the stack has no such
 * frame.
 */
export function sourceLocation(
  stack: string | undefined,
  { filename, map }: Pick<Bundle, 'filename' | 'map'>,
): string | undefined {
  if (!stack) return undefined;
  const from = stack.indexOf(`${filename}:`);
  const position = from < 0 ? null : /^:(\d+):(\d+)/.exec(stack.slice(from + filename.length));
  if (!position) return undefined;
  const entry = new SourceMap(JSON.parse(map) as SourceMapPayload).findEntry(
    Number(position[1]) - 1,
    Number(position[2]) - 1,
  );
  if (!('originalSource' in entry)) return undefined;
  return `${resolve(dirname(filename), entry.originalSource)}:${entry.originalLine + 1}`;
}
