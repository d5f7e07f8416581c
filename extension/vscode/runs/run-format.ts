// Helpers for all views of runs in the extension host. They determine the phase of a run, filter lists of runs, and
// format numbers as short texts (three significant digits, success in per cent, times as `1 m 12 s`). Pure functions.
// Texts that need translation are in the views, not here.
import type { RunSummary } from '../../protocol/page-state';
import { isEvaluation, isInterrupted } from '../../run-data/run-progress';

/** The state of a run as shown to the user. `interrupted`: the run has not ended, but its trainer has ended. */
export type RunPhase = 'running' | 'paused' | 'finished' | 'stopped' | 'failed' | 'interrupted';

/** Returns the phase of a run. A run with an active state but no live trainer is interrupted. */
export function runPhase({ status, live }: Pick<RunSummary, 'status' | 'live'>): RunPhase {
  if (isInterrupted({ status, live })) return 'interrupted';
  switch (status.state) {
    case 'finished':
    case 'stopped':
    case 'failed':
      return status.state;
    case 'paused':
      return 'paused';
    case 'starting':
    case 'running':
    case 'stopping':
      return 'running';
  }
}

/** Whether the run's trainer is running or paused. */
export const isActive = (run: Pick<RunSummary, 'status' | 'live'>): boolean =>
  ['running', 'paused'].includes(runPhase(run));

/**
 * What the command Resume does with a run: resume it with its paused trainer or with a new trainer (`resume`), or open
 * it because it continues (`continues`) or has finished (`finished`).
 */
export function resumeOutcome(run: Pick<RunSummary, 'status' | 'live'>): 'resume' | 'continues' | 'finished' {
  const phase = runPhase(run);
  return phase === 'running' ? 'continues' : phase === 'finished' ? 'finished' : 'resume';
}

/** Returns the `contextValue` of a run's tree item, for the menus in package.json. */
export function contextOf(run: Pick<RunSummary, 'status' | 'live' | 'archived' | 'trainer'>): string {
  const phase = runPhase(run);
  const ended = phase === 'finished' ? phase : 'ended';
  const marks = [...(isEvaluation(run.status) ? ['evaluation'] : []), ...(run.archived ? ['archived'] : [])];
  return [run.trainer ? 'attached' : 'run', isActive(run) ? phase : ended, ...marks].join('.');
}

/**
 * Returns the reason why the trainer paused the run, in one sentence. Returns undefined if the run is not paused or the
 * user has paused it.
 */
export const waitsBecause = (run: Pick<RunSummary, 'status' | 'live'>): string | undefined =>
  runPhase(run) === 'paused' ? run.status.error : undefined;

/**
 * Shortens a sentence to one line of at most `length` characters. Replaces each path by its file name. If the sentence
 * is an error message of an environment, its introduction `environment … (file:line)` becomes `file:line`. Then
 * truncates the text at a word boundary.
 */
export function briefly(sentence: string, length = 60): string {
  const text = sentence
    .slice(0, 500)
    .replace(/(?:[A-Za-z]:)?[^\s(]*[\\/](?=[^\s\\/])/g, '')
    .replace(/^environment [^(]*\(([^)]*)\)/, '$1')
    .replace(/\s+/g, ' ')
    .trim();
  if (text.length <= length) return text;
  const cut = text.slice(0, length);
  return `${cut.slice(0, cut.includes(' ') ? cut.lastIndexOf(' ') : length).replace(/[\s,;:]+$/, '')} …`;
}

/**
 * Returns the names that more than one of these runs has. Views add details to these names, so that users can
 * distinguish the runs.
 */
export function sharedNames(runs: readonly Pick<RunSummary, 'name'>[]): Set<string> {
  const seen = new Set<string>();
  return new Set(runs.map(({ name }) => name).filter(name => seen.size === seen.add(name).size));
}

/** Returns the runs that are not archived, or all runs if all are archived. */
export function withoutArchived<R extends { summary: Pick<RunSummary, 'archived'> }>(runs: readonly R[]): R[] {
  const open = runs.filter(({ summary }) => !summary.archived);
  return open.length > 0 ? open : [...runs];
}

/** Formats the start time of a run in local time: `14:03`, with the date if it is not today. */
export function formatStart(created: string, now = new Date(), locale?: string): string {
  const start = new Date(created);
  const today = start.toDateString() === now.toDateString();
  const year = start.getFullYear() === now.getFullYear() ? undefined : 'numeric';
  return start.toLocaleString(locale, {
    ...(!today && { day: 'numeric', month: 'short', year }),
    hour: '2-digit',
    minute: '2-digit',
  });
}

/** Whether each word of `filter` occurs in the run's name, tags, configuration name or id, ignoring case. */
export function matches({ name, tags = [], config_name, id }: RunSummary, filter: string): boolean {
  const text = [name, ...tags.map(tag => `#${tag}`), config_name, id].join('\n').toLowerCase();
  const words = filter.toLowerCase().split(/\s+/);
  return words.every(word => text.includes(word));
}

/** Formats a share as a percentage: `0.6123` → `61 %`. Percentages below ten have one decimal. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** Formats seconds as `45 s`, `1 m 12 s`, `2 h 05 m`. */
export function duration(seconds: number): string {
  const total = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  if (hours > 0) return `${hours} h ${two(minutes)} m`;
  return minutes > 0 ? `${minutes} m ${two(rest)} s` : `${rest} s`;
}

/**
 * Formats a number with three significant digits and SI prefixes: `0.123`, `−1.50`, `12.3 k`, with a Unicode minus
 * sign.
 */
export function short(value: number): string {
  const size = Math.abs(value);
  const [divisor, prefix] =
    size >= 999_500_000 ? [1e9, ' G'] : size >= 999_500 ? [1e6, ' M'] : size >= 999.5 ? [1e3, ' k'] : [1, ''];
  const scaled = size / divisor;
  const digits = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : scaled >= 0.9995 || scaled === 0 ? 2 : 3;
  return `${value < 0 ? '−' : ''}${scaled.toFixed(digits)}${prefix}`;
}

/** Formats a number of bytes with a decimal unit: `640 B`, `1.23 MB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1000;
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
}

/** Returns the run of which `run` is a fork, as `quickstart, step 10`; undefined if the run is no fork. */
export function formatParent(
  { parent }: Pick<RunSummary, 'parent'>,
  nameOf: (id: string) => string | undefined,
): string | undefined {
  return parent && `${nameOf(parent.run) ?? parent.run}, step ${parent.step}`;
}
