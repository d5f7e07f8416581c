// What is told in the editor of each line of an environment's source: how often the episodes of the last steps reached it, and that
// they never did. Pure; drawing is coverage-decorations.ts.
import type { CoverageLine } from '../protocol/run-folder';

/** Steps whose counts are drawn together. */
export const coveredSteps = 50;

export interface LineMark {
  /** From 1. */
  line: number;
  hits: number;
  /**
   * `reached`, `partly` (a branch of the line never was), `never`; `unrewarded` where what was never reached has to do with reward: a
   * reward that no episode ever got teaches nothing.
   */
  kind: 'reached' | 'partly' | 'never' | 'unrewarded';
}

export interface FileCoverage {
  marks: LineMark[];
  /** Steps that were counted, first and last. */
  steps: [number, number];
}

/** Of one file, by its name in the run's folder, from the lines of `coverage.jsonl`. Undefined where it was never counted. */
export function fileCoverage(counted: readonly CoverageLine[], name: string, text: string): FileCoverage | undefined {
  const { map } = counted.at(-1) ?? {};
  const byStep = new Map(counted.filter(line => line.map === map).map(line => [line.step, line])); // a resume counts steps again
  const newest = [...byStep.values()].sort((a, b) => a.step - b.step).slice(-coveredSteps);
  const sums = new Map<number, [most: number, least: number]>();
  for (const { files } of newest)
    for (const [line, most, least] of Object.hasOwn(files, name) ? files[name] : []) {
      const [m, l] = sums.get(line) ?? [0, 0];
      sums.set(line, [m + most, l + least]);
    }
  if (sums.size === 0) return undefined;
  const lines = text.split(/\r?\n/);
  const marks = [...sums]
    .sort(([a], [b]) => a - b)
    .map(([line, [most, least]]): LineMark => {
      const missed = most === 0 ? 'never' : least === 0 ? 'partly' : 'reached';
      const kind = missed !== 'reached' && /reward/i.test(lines[line - 1] ?? '') ? 'unrewarded' : missed;
      return { line, hits: most, kind };
    });
  return { marks, steps: [newest[0].step, newest.at(-1)!.step] };
}

/** What stands behind a line. */
export function markWords({ hits, kind }: LineMark): string {
  const times = `${hits.toLocaleString('en')}×`;
  if (kind === 'reached') return times;
  if (kind === 'partly') return `${times}, a part never`;
  if (kind === 'never') return 'never reached';
  return hits === 0 ? 'never reached: this reward was never given' : `${times}, a part of this reward never`;
}
