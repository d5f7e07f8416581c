// Converts a sweep on the New Run page to a sweep file, which `ragen sweep` reads, and checks its values. The sweep uses
// the other choices of the page as its configuration. Must not import `vscode`.
import { stringify } from 'yaml';
import { isRecord } from '../../common/json';
import { yamlValue } from '../../common/yaml-text';
import type { FormProblem, NewRunChoice, SweepChoice } from '../../protocol/new-run-page';
import { overridesOf, type EngineKeys } from './new-run-choice';

/** Maximum number of values that are checked one by one before the start; the sweep checks all its runs itself. */
const mostChecked = 64;

/** Key of the problems of a sweep in the form. */
export const sweepKey = 'sweep';

/** A configuration as a sweep file names it: a name, or the path of a file relative to the workspace. */
export type SweepSource = { config_name: string } | { config: string };

export interface Sweep {
  grid: Record<string, unknown[]>;
  /** Number of seeds, or the seeds; undefined for the seed of the configuration. */
  seeds: number | number[] | undefined;
  /** Number of runs at a time. */
  jobs: number;
  /** Number of runs: all combinations of values, for each seed. */
  runs: number;
}

/** Parses the user's texts; if a text is invalid, returns the problems instead. */
export function sweepOf({
  grid: rows,
  seeds: seedText,
  jobs: jobText,
}: SweepChoice): Sweep | { problems: FormProblem[] } {
  const problems: FormProblem[] = [];
  const fail = (message: string): undefined => void problems.push({ key: sweepKey, message });
  const grid: Record<string, unknown[]> = {};
  for (const { key: typed, values: text } of rows) {
    const key = typed.trim();
    const values = listOf(text);
    if (key === '') fail('Sweep: enter a configuration key for each row, or remove the row.');
    else if (!/^[\w.@-]+$/.test(key)) fail(`Sweep: ${key} is not a configuration key: write it as group.key.`);
    else if (key in grid) fail(`Sweep: ${key} occurs twice: enter all its values in one row.`);
    else if (!values) fail(`Sweep: the values of ${key} are not a list: separate them by commas, such as 0.1, 0.2.`);
    else grid[key] = values;
  }
  const seeds = seedText.trim() === '' ? undefined : seedsOf(seedText);
  if (seeds === null) fail('Sweep: the seeds are neither a number nor a list: enter 3, or 0, 1, 2.');
  const jobs = Number(jobText.trim() || '1');
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > 64) fail('Sweep: the runs at a time are an integer from 1 to 64.');
  if (problems.length > 0 || seeds === null) return { problems };
  const points = Object.values(grid).reduce((count, values) => count * values.length, 1);
  const runs = points * (seeds === undefined ? 1 : typeof seeds === 'number' ? seeds : seeds.length);
  return { grid, seeds, jobs, runs };
}

/** Returns the text of the sweep file. `name` is the name of the sweep. */
export function sweepFile(
  choice: NewRunChoice,
  sweep: Sweep,
  source: SweepSource,
  name: string,
  engine?: EngineKeys,
): string {
  const overrides = overridesOf(choice, engine);
  const document = {
    ...source,
    ...(overrides.length > 0 && { overrides }),
    ...(Object.keys(sweep.grid).length > 0 && { grid: sweep.grid }),
    ...(sweep.seeds !== undefined && { seeds: sweep.seeds }),
  };
  const title = `# Sweep ${name}: ${sweep.runs} ${sweep.runs === 1 ? 'run' : 'runs'}. To continue it: ragen sweep ${name}\n`;
  return title + stringify(document, { lineWidth: 120, flowCollectionPadding: false });
}

/** Checks each value of the sweep by itself. `check` rejects overrides that the configuration does not allow. */
export async function sweepProblems(
  { grid }: Sweep,
  check: (overrides: string[]) => Promise<unknown>,
): Promise<FormProblem[]> {
  const single = Object.entries(grid).flatMap(([key, values]) => values.map(value => ({ key, value })));
  for (const { key, value } of single.slice(0, mostChecked)) {
    try {
      await check([`${key}=${JSON.stringify(value)}`]);
    } catch (error) {
      return [{ key: sweepKey, message: `Sweep: ${error instanceof Error ? error.message : String(error)}` }];
    }
  }
  return [];
}

/** Parses values separated by commas as a YAML list; undefined if the text is no list of plain values. */
function listOf(text: string): unknown[] | undefined {
  try {
    const list = yamlValue(`[${text}]`);
    const isPlain = (value: unknown): boolean => !isRecord(value) && value !== undefined;
    return Array.isArray(list) && list.length > 0 && list.every(isPlain) ? (list as unknown[]) : undefined;
  } catch {
    return undefined;
  }
}

function seedsOf(text: string): number | number[] | null {
  const list = listOf(text);
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
  if (!list?.every(isCount)) return null;
  if (list.length > 1) return list;
  return list[0] >= 1 ? list[0] : null;
}
