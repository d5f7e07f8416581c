// Uses the bundle's source map to convert coverage counts of the bundle's ranges into counts per source line.
import { eachMapping, TraceMap, type EachMapping } from '@jridgewell/trace-mapping';
import { createHash } from 'node:crypto';
import { dirname, resolve, sep } from 'node:path';
import type { CoveredCode } from '../../../protocol/environment-link';
import type { Bundle } from '../build/build';
import type { CoveredRange } from '../threads/worker-messages';

/**
 * Returns how often each source line ran; files in node_modules are omitted.
 * @param ranges outer ranges before inner ranges, as V8 returns them
 */
export function coveredLines(
  tag: string,
  { code, map, version, filename }: Pick<Bundle, 'code' | 'map' | 'version' | 'filename'>,
  ranges: readonly CoveredRange[],
): CoveredCode {
  const counts = new Float64Array(code.length);
  for (const [from, to, count] of ranges) counts.fill(count, from, to);
  const lineStarts = [0];
  for (let end = code.indexOf('\n'); end >= 0; end = code.indexOf('\n', end + 1)) lineStarts.push(end + 1);
  const offsetOf = (line: number, column: number): number => lineStarts[line - 1] + column;
  const mapped = new Map<number, EachMapping>();
  eachMapping(new TraceMap(map), mapping => {
    mapped.set(offsetOf(mapping.generatedLine, mapping.generatedColumn), mapping);
  });
  const files = new Map<string, Map<number, [most: number, least: number]>>();
  for (const [offset, { source, originalLine }] of mapped) {
    if (source === null || originalLine === null || source.split('/').includes('node_modules')) continue;
    // A mapping may point to the start of a line, before the indentation.
    const at = offset + /^[ \t]*/.exec(code.slice(offset, offset + 1000))![0].length;
    if (at > offset && mapped.has(at)) continue;
    if (!/[^\s{}();,]/.test(code[at] ?? '')) continue; // V8 counts brackets after a return as not executed
    const lines = files.get(source) ?? new Map<number, [number, number]>();
    files.set(source, lines);
    const [most, least] = lines.get(originalLine) ?? [0, Infinity];
    lines.set(originalLine, [Math.max(most, counts[at]), Math.min(least, counts[at])]);
  }
  return {
    tag,
    version,
    map: createHash('sha256').update(map).digest('hex').slice(0, 8),
    files: [...files].map(([source, lines]) => ({
      file: resolve(dirname(filename), source.replaceAll('/', sep)),
      lines: [...lines].sort(([a], [b]) => a - b).map(([line, [most, least]]) => [line, most, least]),
    })),
  };
}
