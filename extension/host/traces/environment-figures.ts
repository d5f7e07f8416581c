// How an environment's code does in a run, told over its `reset` and `step`: the version in use, how many of the newest steps' episodes it
// played, and what they came to. Pure.
import { maximum, minimum } from '../../protocol/lists';
import { counted, formatNumber, formatPercent, formatSigned } from '../../protocol/numbers';
import type { RunEvent } from '../../protocol/run-folder';
import type { EpisodeHead } from './episode-heads';

/** Training steps whose episodes are counted, the newest ones. */
export const countedSteps = 5;

export interface EnvironmentFigures {
  run: string;
  version: string;
  episodes: number;
  /** First and last step that was counted. */
  steps: [number, number];
  /** Mean return. */
  reward: number;
  success: number;
  /** Episodes that the code ended by an error in these steps. */
  errors: number;
}

/** Of a version under some tags; undefined before it has played. */
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
  return { run, version, episodes: played.length, steps, reward: mean(head => head.reward), success: mean(head => Number(head.success)), errors }; // prettier-ignore
}

/** What stands over `reset`: who plays. */
export function resetWords({ run, version, episodes, steps: [from, to] }: EnvironmentFigures): string {
  const when = from === to ? `step ${to}` : `steps ${from}–${to}`;
  return `${run}: version ${version.slice(0, 8)} · ${formatNumber(episodes)} episodes in ${when}`;
}

/** What stands over `step`: what comes of it. */
export function stepWords({ run, reward, success, errors }: EnvironmentFigures): string {
  const failed = errors === 0 ? 'no errors' : counted(errors, 'error');
  return `${run}: return ${formatSigned(reward)} · success ${formatPercent(success)} · ${failed}`;
}

/** Lines (from 0) where a source defines the two methods, as methods, properties or functions. */
export function methodLines(text: string): { name: 'reset' | 'step'; line: number }[] {
  return text.split('\n').flatMap((source, line) => {
    const found = /^\s*(?:(?:export|async|public|override|function|const)\s+)*(reset|step)\s*(?:\(|[:=]\s*(?:async\s*)?(?:\(|function\b))/.exec(source); // prettier-ignore
    const opens = found && (/[{>]\s*$/.test(source) || /=>/.test(source));
    return opens ? [{ name: found[1] as 'reset' | 'step', line }] : [];
  });
}
