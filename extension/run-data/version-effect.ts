// Effect of an environment code change on reward and success: compares the last episodes before the change with the
// first episodes after the change. Members of a group share their initial state, so the independent samples are groups,
// not episodes. The interval is Welch's interval over group means. The difference includes the effect of training
// during the compared steps; fewer steps reduce this effect.
import { placeEvents } from './event-marks';
import { environmentReloadSchema, environmentVersionSchema } from './run-events';
import { episodeSchema } from './episode';
import { isVersionName } from './run-file-names';
import type { Episode } from './episode';
import type { Manifest } from './run-manifest';
import type { RunEvent } from './run-events';

/** A version of a tag's environment in a run. */
export interface RanVersion {
  tag: string;
  version: string;
  /**
   * First step in which the version ran. `to` is the last such step, or null for the newest version. In the step in
   * which the versions change, episodes may use either version.
   */
  from: number;
  to: number | null;
}

/** Determines from a run's manifest and events which environment versions each tag used, in order. */
export function ranVersions(
  { environments }: Pick<Manifest, 'environments'>,
  events: readonly RunEvent[],
): RanVersion[] {
  const ran: RanVersion[] = environments.map(({ tag, version }) => ({ tag, version, from: 1, to: null }));
  for (const {
    event: { kind, data },
    step: from,
  } of placeEvents(events)) {
    const edit = kind === 'environment_reload' ? environmentReloadSchema.safeParse(data).data : undefined;
    const resumed = kind === 'environment_version' ? environmentVersionSchema.safeParse(data).data : undefined;
    const change = edit ?? resumed;
    if (!change) continue;
    const last = ran.findLast(({ tag }) => tag === change.tag);
    if (last) last.to = from;
    ran.push({ tag: change.tag, version: change.to, from, to: null });
  }
  return ran.filter(({ version }) => isVersionName(version));
}

/**
 * Returns each version once, in the order in which the versions last became active. A version has several ranges if an
 * edit was undone, because the earlier version then ran again.
 */
export const lastRuns = (ran: readonly RanVersion[]): RanVersion[] =>
  ran.filter(({ tag, version }, i) => !ran.slice(i + 1).some(next => next.tag === tag && next.version === version));

/** Returns all step ranges in which a version ran, in order. */
export const spansOf = (ran: readonly RanVersion[], { tag, version }: RanVersion): Pick<RanVersion, 'from' | 'to'>[] =>
  ran.filter(span => span.tag === tag && span.version === version).map(({ from, to }) => ({ from, to }));

/** Returns the steps whose episodes are needed to compare `after` with `before`. */
export function comparedRange(before: RanVersion, after: RanVersion, steps = comparedSteps): number[] {
  const end = before.to ?? after.from;
  const wanted = new Set<number>();
  for (let step = Math.max(1, end - steps); step <= end; step++) wanted.add(step);
  for (let step = after.from; step <= after.from + steps; step++) wanted.add(step);
  return [...wanted];
}

export interface SampleMoments {
  episodes: number;
  groups: number;
  mean: number;
}

export interface Effect {
  before: SampleMoments;
  after: SampleMoments;
  /** Mean after the change minus mean before the change. */
  difference: number;
  /** Two-sided 95 % confidence interval; null if either side has fewer than two groups. */
  interval: [low: number, high: number] | null;
}

export interface VersionEffect {
  reward: Effect;
  success: Effect;
}

const compared = {
  step: true,
  mode: true,
  tag: true,
  group_id: true,
  reward: true,
  success: true,
  error: true,
  environment: true,
} as const;
/** Fields of an episode that the comparison reads. */
export const comparedEpisodeSchema = episodeSchema.pick(compared);
export type ComparedEpisode = Pick<Episode, keyof typeof compared>;

/** Default number of steps compared on each side. */
const comparedSteps = 10;

/**
 * Compares a tag's last training steps under version `from` with its first training steps under version `to`. Episodes
 * that failed in environment code are left out. Undefined if either version has no episodes.
 */
export function versionEffect(
  episodes: Iterable<ComparedEpisode>,
  { tag, from, to, steps = comparedSteps }: { tag: string; from: string; to: string; steps?: number },
): VersionEffect | undefined {
  const own = [...episodes].filter(e => e.tag === tag && e.mode === 'train' && e.error === undefined);
  const played = (version: string) => own.filter(e => e.environment.version === version);
  const stepsOf = (some: ComparedEpisode[]) => [...new Set(some.map(({ step }) => step))].sort((a, b) => a - b);
  const [old, fresh] = [played(from), played(to)];
  const first = stepsOf(fresh)[0];
  const last = new Set(stepsOf(old.filter(({ step }) => step <= first)).slice(-steps));
  const next = new Set(stepsOf(fresh).slice(0, steps));
  const before = old.filter(({ step }) => last.has(step));
  const after = fresh.filter(({ step }) => next.has(step));
  if (before.length === 0 || after.length === 0) return undefined;
  return {
    reward: effect(before, after, ({ reward }) => reward),
    success: effect(before, after, ({ success }) => Number(success)),
  };
}

/**
 * Formats an effect: `reward 0.42 → 0.73 (+0.31, 95 % interval 0.10 … 0.52), success 12 % → 40 % (+28, 3 … 53 points)
 * over 40 and 38 groups`.
 */
export function formatEffect({ reward, success }: VersionEffect): string {
  const fixed = (x: number, scale: number) => (x * scale).toFixed(scale === 1 ? 2 : 0);
  const words = ({ before, after, difference, interval }: Effect, scale: number, unit: string, points: string) => {
    const range = interval ? `, 95 % interval ${interval.map(x => fixed(x, scale)).join(' … ')}${points}` : '';
    const change = `${difference >= 0 ? '+' : ''}${fixed(difference, scale)}`;
    return `${fixed(before.mean, scale)}${unit} → ${fixed(after.mean, scale)}${unit} (${change}${range})`;
  };
  const { before, after } = reward;
  return `reward ${words(reward, 1, '', '')}, success ${words(success, 100, ' %', ' points')} over ${before.groups} and ${after.groups} groups`;
}

function effect(
  before: readonly ComparedEpisode[],
  after: readonly ComparedEpisode[],
  value: (episode: ComparedEpisode) => number,
): Effect {
  const [x, y] = [groupMeans(before, value), groupMeans(after, value)];
  return {
    before: { episodes: before.length, groups: x.length, mean: mean(x) },
    after: { episodes: after.length, groups: y.length, mean: mean(y) },
    difference: mean(y) - mean(x),
    interval: welchInterval(x, y),
  };
}

function groupMeans(episodes: readonly ComparedEpisode[], value: (episode: ComparedEpisode) => number): number[] {
  const groups = new Map<string, number[]>();
  for (const episode of episodes) {
    const key = `${episode.step} ${episode.group_id}`;
    const members = groups.get(key);
    if (members) members.push(value(episode));
    else groups.set(key, [value(episode)]);
  }
  return [...groups.values()].map(mean);
}

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

/**
 * Returns the 95 % confidence interval of mean(y) − mean(x) under unequal variances, with Welch–Satterthwaite degrees
 * of freedom.
 */
export function welchInterval(x: readonly number[], y: readonly number[]): [number, number] | null {
  if (x.length < 2 || y.length < 2) return null;
  const [u, v] = [x, y].map(values => {
    const centre = mean(values);
    return values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1) / values.length;
  });
  const difference = mean(y) - mean(x);
  if (u + v === 0) return [difference, difference];
  const freedom = (u + v) ** 2 / (u ** 2 / (x.length - 1) + v ** 2 / (y.length - 1));
  const half = quantileOfT(freedom) * Math.sqrt(u + v);
  return [difference - half, difference + half];
}

/**
 * Returns the 97.5 % quantile of Student's t. With T = √ν · tan θ, the density of θ is proportional to cos^(ν − 1) θ.
 * The density is summed from 0 until the sum is 95 % of the total over [0, π/2].
 */
function quantileOfT(freedom: number): number {
  const slices = 20_000;
  const width = Math.PI / 2 / slices;
  const slice = (i: number) => Math.cos((i + 0.5) * width) ** (freedom - 1);
  let total = 0;
  for (let i = 0; i < slices; i++) total += slice(i);
  let i = 0;
  let missing = 0.95 * total;
  for (; slice(i) < missing; i++) missing -= slice(i);
  return Math.sqrt(freedom) * Math.tan((i + missing / slice(i)) * width);
}
