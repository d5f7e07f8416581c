// Converts the line coverage of a step's episodes to one record per environment version. Counts are summed over all
// workers that ran the version. File names are the names of the version's stored sources.
import { relative, sep } from 'node:path';
import type { CoveredCode, LoadedEnvironment } from '../../protocol/environment-link';
import type { CoverageLine } from '../../run-data/environment-snapshot';
import { sourceSnapshots } from '../store/source-snapshots';

/**
 * Returns one record per loaded version. If some episodes of the step ran an older version, the coverage of the older
 * version is dropped.
 */
export function coverageLines(
  step: number,
  covered: readonly CoveredCode[],
  loaded: readonly LoadedEnvironment[],
): (CoverageLine & { version: string })[] {
  const versions = new Map(loaded.map(environment => [environment.version, environment]));
  return [...versions.values()].flatMap(({ version, source, bundle }) => {
    const own = covered.filter(code => code.version === version);
    if (own.length === 0) return [];
    const { root } = sourceSnapshots(source, bundle);
    const { map } = own.at(-1)!;
    const files = new Map<string, Map<number, [number, number]>>();
    for (const { file, lines } of own.filter(code => code.map === map).flatMap(code => code.files)) {
      const name = relative(root, file).replaceAll(sep, '/');
      const sums = files.get(name) ?? new Map<number, [number, number]>();
      files.set(name, sums);
      for (const [line, most, least] of lines) {
        const [m, l] = sums.get(line) ?? [0, 0];
        sums.set(line, [m + most, l + least]);
      }
    }
    const counts = [...files].map(([name, sums]) => [name, [...sums].map(([line, [m, l]]) => [line, m, l])] as const);
    return [{ version, step, map, files: Object.fromEntries(counts) as CoverageLine['files'] }];
  });
}
