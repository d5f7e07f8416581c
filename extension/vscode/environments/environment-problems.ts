// Current problems of a run's environments, computed from the run's events. There are two kinds of problems. The first
// kind is an error in edited code, which prevents the run from using this code. Such a problem lasts until a later save
// fixes the error. The second kind is an error in the code that the run uses, if the error ended episodes. Such a
// problem lasts until the run uses other code. Must not import `vscode`.
import { environmentErrorSchema, environmentRefusedSchema } from '../../run-data/run-events';
import type { RunEvent } from '../../run-data/run-events';

export interface EnvironmentProblem {
  /** Absolute path of the source file. */
  file: string;
  /** 1-based. If `endLine` and `endColumn` are missing, the problem extends to the end of the line. */
  line: number;
  column: number;
  endLine?: number;
  endColumn?: number;
  message: string;
  severity: 'error' | 'warning';
}

/**
 * Returns the problems that still exist after the last event. If several tags have the same problem, it is returned
 * once.
 */
export function environmentProblems(events: readonly RunEvent[]): EnvironmentProblem[] {
  const refused = new Map<string, EnvironmentProblem[]>();
  const ended = new Map<string, Map<string, { at: EnvironmentProblem; episodes: number }>>();
  for (const { kind, message, data } of events) {
    const tag = String(data?.tag);
    if (kind === 'resume') {
      refused.clear(); // a resume loads the code on disk, so earlier rejections no longer apply
      ended.clear();
    } else if (kind === 'environment_mended') refused.delete(tag);
    else if (kind === 'environment_reload') {
      refused.delete(tag);
      ended.delete(tag);
    } else if (kind === 'environment_refused') {
      const { problems = [] } = environmentRefusedSchema.safeParse(data).data ?? {};
      refused.set(
        tag,
        problems.map(({ kind: _, ...problem }) => ({ ...problem, severity: 'error' })),
      );
    } else if (kind === 'environment_error') {
      const { at = '', episodes = 1 } = environmentErrorSchema.safeParse(data).data ?? {};
      const found = parseLocation(at);
      if (!found) continue;
      const locations = ended.get(tag) ?? new Map<string, { at: EnvironmentProblem; episodes: number }>();
      ended.set(tag, locations);
      const entry = locations.get(at) ?? { at: { ...found, column: 1, message, severity: 'warning' }, episodes: 0 };
      locations.set(at, { ...entry, episodes: entry.episodes + episodes });
    }
  }
  const warnings = [...ended.values()].flatMap(locations => [...locations.values()]);
  const all = [
    ...[...refused.values()].flat(),
    ...warnings.map(({ at, episodes }) => ({ ...at, message: `${at.message} — ${counted(episodes)}` })),
  ];
  const once = new Map(all.map(problem => [JSON.stringify(problem), problem]));
  return [...once.values()];
}

/**
 * Returns the source location of a failure that paused a run; `sentence` is the message of the failure. Returns
 * undefined if the run's events contain no location.
 */
export function failureLocation(
  events: readonly RunEvent[],
  sentence: string,
): Pick<EnvironmentProblem, 'file' | 'line'> | undefined {
  const event = events.findLast(({ kind, message }) => kind === 'environment_error' && sentence.startsWith(message));
  return parseLocation(environmentErrorSchema.safeParse(event?.data).data?.at ?? '');
}

/** Parses `file:line`; undefined for other texts. */
function parseLocation(at: string): Pick<EnvironmentProblem, 'file' | 'line'> | undefined {
  const [, file, line] = /^(.*):(\d+)$/.exec(at) ?? [];
  return file === undefined ? undefined : { file, line: Number(line) };
}

const counted = (episodes: number): string => `${episodes} ${episodes === 1 ? 'episode' : 'episodes'} ended here`;
