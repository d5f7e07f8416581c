// Statistics of an environment's code in a run, shown above `reset` and `step` in the source: the version in use, the
// number of episodes that this version played in the newest steps, and the mean results of these episodes. Pure
// functions.
import { maximum, minimum } from '../../common/lists';
import { counted, formatNumber, formatPercent, formatSigned } from '../../common/numbers';
import type { RunEvent } from '../../run-data/run-events';
import type { EpisodeHead } from '../run-files/episodes/episode-heads';

/** Number of newest training steps whose episodes are counted. */
export const countedSteps = 5;

export interface EnvironmentFigures {
  run: string;
  version: string;
  episodes: number;
  /** First and last counted step. */
  steps: [number, number];
  /** Mean return of the counted episodes. */
  reward: number;
  success: number;
  /** Number of episodes in these steps that ended with an error in the environment's code. */
  errors: number;
}

/**
 * Returns the statistics of the episodes in `heads` that `version` played for one of the `tags`. Returns undefined if
 * there are no such episodes.
 */
export function environmentFigures(
  run: string,
  { version, tags }: { version: string; tags: ReadonlySet<string> },
  heads: readonly EpisodeHead[],
  events: readonly RunEvent[],
): EnvironmentFigures | undefined {
  const played = heads.filter(({ tag, environment }) => tags.has(tag) && environment.version === version);
  if (played.length === 0) return undefined;
  const mean = (value: (head: EpisodeHead) => number) =>
    played.reduce((sum, head) => sum + value(head), 0) / played.length;
  const numbers = played.map(({ step }) => step);
  const steps: [number, number] = [minimum(numbers), maximum(numbers)];
  const errors = events
    .filter(({ kind, step }) => kind === 'environment_error' && step >= steps[0] && step <= steps[1])
    .filter(({ data }) => tags.has(String(data?.tag)))
    .reduce((sum, { data }) => sum + (typeof data?.episodes === 'number' ? data.episodes : 1), 0);
  return {
    run,
    version,
    episodes: played.length,
    steps,
    reward: mean(head => head.reward),
    success: mean(head => Number(head.success)),
    errors,
  };
}

/** Formats the code lens above `reset`: run, version and number of episodes. */
export function formatReset({ run, version, episodes, steps: [from, to] }: EnvironmentFigures): string {
  const when = from === to ? `step ${to}` : `steps ${from}–${to}`;
  return `${run}: version ${version.slice(0, 8)} · ${formatNumber(episodes)} episodes in ${when}`;
}

/** Formats the code lens above `step`: mean results and number of errors. */
export function formatStep({ run, reward, success, errors }: EnvironmentFigures): string {
  const failed = errors === 0 ? 'no errors' : counted(errors, 'error');
  return `${run}: return ${formatSigned(reward)} · success ${formatPercent(success)} · ${failed}`;
}

/** Returns the 0-based lines at which a source defines `reset` and `step`, as methods, properties or functions. */
export function methodLines(text: string): { name: 'reset' | 'step'; line: number }[] {
  return text.split('\n').flatMap((source, line) => {
    const found =
      /^\s*(?:(?:export|async|public|override|function|const)\s+)*(reset|step)\s*(?:\(|[:=]\s*(?:async\s*)?(?:\(|function\b))/.exec(
        source,
      );
    const opens = found && (/[{>]\s*$/.test(source) || /=>/.test(source));
    return opens ? [{ name: found[1] as 'reset' | 'step', line }] : [];
  });
}
