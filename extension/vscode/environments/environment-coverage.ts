// Computes a coverage mark for each line of an environment's source. A mark shows how often the episodes of recent
// steps executed the line; lines that were never executed also have a mark. Pure functions; coverage-decorations.ts
// draws the marks.
import type { CoverageLine } from '../../run-data/environment-snapshot';

/** Number of newest steps whose counts are summed. */
export const coveredSteps = 50;

export interface LineMark {
  /** 1-based line number. */
  line: number;
  hits: number;
  /**
   * Kind of mark:
   * - `reached`: the line was executed.
   * - `partly`: a branch of the line was never executed.
   * - `never`: the line was never executed.
   * - `unrewarded`: the same condition as for `partly` or `never`, and the line contains the word `reward`. The policy
   *   cannot learn this reward.
   * - `uncounted`: no step of this version has been counted yet.
   */
  kind: 'reached' | 'partly' | 'never' | 'unrewarded' | 'uncounted';
}

export interface FileCoverage {
  marks: LineMark[];
  /** First and last counted step; null if no step has been counted. */
  steps: [number, number] | null;
}

/**
 * Returns the coverage of a source file from the lines of `coverage.jsonl`. `name` is the source's name in the run
 * folder. Returns undefined if the file's coverage was never counted.
 */
export function fileCoverage(counted: readonly CoverageLine[], name: string, text: string): FileCoverage | undefined {
  const { map } = counted.at(-1) ?? {};
  // A later line of the same step replaces an earlier one.
  const byStep = new Map(counted.filter(line => line.map === map).map(line => [line.step, line]));
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

/**
 * Returns the marks of a version of which no step has been counted: one mark for each line that begins a block, or for
 * the first line if no line does.
 */
export function uncountedCoverage(text: string): FileCoverage {
  const lines = text.split(/\r?\n/).flatMap((line, i) => (/\{\s*$/.test(line) ? [i + 1] : []));
  return { marks: (lines.length > 0 ? lines : [1]).map(line => ({ line, hits: 0, kind: 'uncounted' })), steps: null };
}

/** Formats a mark as the text that is shown after its line. */
export function formatMark({ hits, kind }: LineMark): string {
  const times = `${hits.toLocaleString('en')}×`;
  if (kind === 'reached') return times;
  if (kind === 'partly') return `${times}, but part of the line never ran`;
  if (kind === 'uncounted') return 'not yet counted';
  if (kind === 'never') return 'never executed';
  return hits === 0
    ? 'never executed: this reward was never given'
    : `${times}, but part of this reward was never given`;
}
