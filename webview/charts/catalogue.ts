// Assigns metrics to charts, and charts to groups. The metrics that show whether a run is healthy come first, then the
// metrics that an RL practitioner checks next. Every other metric is assigned to a group by its key, so a new metric
// gets a chart although this file does not name it.
import type { Unit } from '../shared/format';

/**
 * Band around a line. If the run logs two metrics as the band's edges, `low` and `high` are the keys of these metrics.
 * Otherwise the line is a success rate and the band is its confidence interval; `episodes` is the key of the metric
 * that counts the episodes.
 */
export type LineBand = { low: string; high: string } | { episodes: string; tag: string; side: 'train' | 'val' };

export interface ChartLine {
  key: string;
  /** Name of the line, unique within its chart. */
  label: string;
  /**
   * Offset of the line's colour from the run's colour in the palette. The offset of a validation line does not depend
   * on whether its chart also has a training line.
   */
  colourOffset: number;
  band?: LineBand;
}

export interface ChartSpec {
  /**
   * Identifier of the chart, which stays the same throughout a run. The view settings store these identifiers for
   * enlarged, pinned and moved charts.
   */
  id: string;
  title: string;
  unit: Unit;
  lines: ChartLine[];
  /** Whether the chart shows the distribution of scores instead of lines. */
  scores?: boolean;
}

/** Returns the keys that a chart reads: the keys of its lines, then the keys of its bands. */
export const keysOf = ({ lines }: ChartSpec): string[] => [
  ...lines.map(({ key }) => key),
  ...lines.flatMap(({ band }) => (!band ? [] : 'low' in band ? [band.low, band.high] : [band.episodes])),
];

export interface ChartGroup {
  id: string;
  title: string;
  charts: ChartSpec[];
}

interface Planned {
  title: string;
  /**
   * Keys or patterns of the chart's lines. If `first` is set, only the first key or pattern that the run has is used.
   */
  keys: (string | RegExp)[];
  first?: boolean;
  /** Whether to show the chart even if the run has not logged any of the chart's keys yet. */
  always?: boolean;
  /**
   * Whether to omit the bands that reach from a minimum to a maximum. Such a band would make the y range so large that
   * the line would look flat.
   */
  plain?: boolean;
}

interface PlannedGroup {
  id: string;
  title: string;
  charts: Planned[];
  /**
   * Pattern of further keys of the group. A key that matches the pattern belongs to the group even if none of the
   * group's charts names it. Each of these keys gets its own chart.
   */
  rest: RegExp;
}

/** Titles of the charts that are pinned by default, until the user pins or unpins a chart. */
export const pinnedAtFirst: readonly string[] = ['success', 'reward', 'in-group reward std', 'entropy'];

const groupsOfCharts: PlannedGroup[] = [
  {
    id: 'task',
    title: 'Task',
    charts: [
      { title: 'success', keys: [/^train\/[^/]+\/success$/, /^val-env\/[^/]+\/success$/], always: true },
      {
        title: 'reward',
        keys: [
          'critic/score/mean',
          'critic/rewards/mean',
          'charts/avg_episode_return',
          'train/charts/avg_episode_return',
        ],
        first: true,
        always: true,
        plain: true,
      },
      {
        title: 'return',
        keys: [/^(train\/)?charts\/avg_episode_return$/, 'val-env/charts/avg_episode_return'],
      },
      { title: 'pass@k', keys: [/^(train|val-env)\/[^/]+\/pass@\d+$/] },
    ],
    rest: /^(charts|critic\/(score|rewards))\//,
  },
  {
    id: 'policy',
    title: 'Policy',
    charts: [
      { title: 'entropy', keys: ['actor/entropy', 'actor/entropy_loss'], first: true, always: true },
      { title: 'KL', keys: ['actor/ppo_kl', 'actor/kl_loss'] },
      { title: 'clip fraction', keys: ['actor/pg_clipfrac'] },
      { title: 'policy loss', keys: ['actor/pg_loss'] },
      { title: 'learning rate', keys: ['actor/lr', 'critic/lr'] },
    ],
    rest: /^(actor|critic)\//,
  },
  {
    id: 'stability',
    title: 'Stability',
    charts: [
      { title: 'gradient norm', keys: ['actor/grad_norm', 'critic/grad_norm'] },
      {
        title: 'response length',
        keys: ['response_length/mean', 'train/response_length', 'response_length'],
        first: true,
      },
      { title: 'responses at the limit', keys: ['response_length/clip_ratio'] },
      { title: 'answers without an action', keys: ['rollout/invalid_answer_rate'] },
      { title: 'environment errors', keys: ['train/env_error_rate', 'val-env/env_error_rate'] },
      { title: 'age of the rollout in steps', keys: ['rollout/staleness'] },
      { title: 'skipped updates', keys: ['actor/skipped_updates'] },
    ],
    rest: /^(rollout_corr|response_length|prompt_length|early_stopped|gradient_analysis|grad)[/_]/,
  },
  {
    id: 'collapse',
    title: 'Collapse',
    charts: [
      {
        title: 'in-group reward std',
        keys: ['rollout/in_group_reward_std', 'rollout/in_group_std'],
        first: true,
        always: true,
      },
      { title: 'mutual information', keys: [/^collapse_(first_turn|trajectory)_sample\/mi_estimate$/] },
      {
        title: 'reasoning entropy given the prompt',
        keys: [/^collapse_(first_turn|trajectory)_sample\/conditional_entropy_est$/],
      },
      { title: 'retrieval accuracy', keys: [/^collapse_(first_turn|trajectory)_sample\/retrieval_accuracy$/] },
      { title: 'most frequent thought', keys: ['thoughts/most_frequent'] },
    ],
    rest: /^(collapse|thoughts)/,
  },
  {
    id: 'filter',
    title: 'Rollout filter',
    charts: [
      { title: 'kept groups', keys: ['rollout/filter_kept_ratio'] },
      { title: 'groups without variance', keys: ['rollout/filter_zero_count'] },
      { title: 'reward std, kept groups', keys: ['rollout/chosen_in_group_reward_std'] },
    ],
    rest: /^(rollout\/(filter_|in_group|chosen_in_group|empty_)|train\/(soft_reweight|rollout_attempts))/,
  },
  { id: 'environments', title: 'Environments', charts: [], rest: /^(train|val-env|rollout|response)(\/|$)/ },
  {
    id: 'throughput',
    title: 'Throughput',
    charts: [
      { title: 'tokens/s', keys: ['perf/throughput'] },
      { title: 'rollout tokens/s', keys: ['perf/rollout_tokens_per_s'] },
      { title: 'training tokens/s', keys: ['perf/train_tokens_per_s'] },
      { title: 'sampling while training', keys: ['rollout/overlap'] },
    ],
    rest: /^perf\/(?!time_per_step)/,
  },
  {
    id: 'timing',
    title: 'Timing',
    charts: [{ title: 'time per step', keys: ['perf/time_per_step'] }],
    rest: /^(timing|perf\/time_per_step)/,
  },
];

/** Returns the environment tags in a run's keys, in the order of their first appearance. */
export function tagsOf(keys: readonly string[]): string[] {
  const tags = keys.flatMap(key => /^(?:train|val-env)\/([^/]+)\/(?:success|num_actions)$/.exec(key)?.[1] ?? []);
  return [...new Set(tags)];
}

export interface Arranged {
  keys: readonly string[];
  /** Whether the run stores the distribution of scores. */
  scored?: boolean;
  /**
   * Environment tag whose metrics are shown. Metrics without a tag are always shown. If undefined, the metrics of all
   * tags are shown.
   */
  tag?: string;
}

/**
 * Returns the chart groups of a run in display order. Each shown key occurs in exactly one chart: as a line, or as an
 * edge of a band.
 */
export function arrange({ keys, scored = false, tag }: Arranged): ChartGroup[] {
  const tags = tagsOf(keys);
  const hidden = tag !== undefined && tags.includes(tag) ? tags.filter(other => other !== tag) : [];
  const shown = keys.filter(key => key !== 'wall_s' && !hidden.includes(key.split('/')[1]));
  const free = new Set(shown);
  const bounds = boundsOf(free);
  const groups = groupsOfCharts.map(({ id, title, charts }) => ({
    ...{ id, title },
    charts: charts.flatMap(planned => take(planned, free, bounds) ?? []),
  }));
  if (scored) groups[0].charts.push({ id: 'scores', title: 'scores', unit: 'number', lines: [], scores: true });
  byTag(
    free,
    tags,
    bounds,
    groups.find(({ id }) => id === 'environments')!,
  );
  const other: ChartGroup = { id: 'other', title: 'Other', charts: [] };
  for (const key of [...free].sort(naturally)) {
    const at = groupsOfCharts.findIndex(({ rest }) => rest.test(key));
    (groups[at] ?? other).charts.push(single(key, bounds));
  }
  return [...groups, other].filter(({ charts }) => charts.length > 0);
}

/** Returns the unit of a key's values, derived from its name. */
export function unitOf(key: string): Unit {
  const name = key.slice(key.lastIndexOf('/') + 1);
  if (/^timing_s\//.test(key) || name === 'time_per_step') return 'seconds';
  const share =
    /^(success|pg_clipfrac|pg_clipfrac_lower|vf_clipfrac|action_is_(valid|effective)|manager_invalid_action|most_frequent|overlap)$/;
  if (share.test(name) || /^retrieval_accuracy(@\d+)?$/.test(name)) return 'share';
  if (/^pass@\d+$/.test(name) || /(^|_)(ratio|rate)$/.test(name)) return 'share';
  return 'number';
}

/**
 * Finds the bands of all metrics, by metric key. The edges of a band are `x/min` and `x/max` around `x/mean`, or
 * `x_ci_low` and `x_ci_high` around `x`. `free` contains the keys that have no chart yet; the keys of band edges are
 * removed from it.
 */
function boundsOf(free: Set<string>): Map<string, LineBand> {
  const bounds = new Map<string, LineBand>();
  for (const key of [...free]) {
    const stem = key.replace(/\/mean$/, '');
    const pairs = [[`${key}_ci_low`, `${key}_ci_high`], ...(stem === key ? [] : [[`${stem}/min`, `${stem}/max`]])];
    const [low, high] = pairs.find(pair => pair.every(edge => free.has(edge))) ?? [];
    if (low && high) bounds.set(key, { low, high });
    const success = /^(train|val-env)\/([^/]+)\/success$/.exec(key);
    if (success) {
      const [, prefix, tag] = success;
      bounds.set(key, { episodes: `${prefix}/${tag}/num_episodes`, tag, side: prefix === 'train' ? 'train' : 'val' });
    }
  }
  for (const band of bounds.values()) if ('low' in band) for (const edge of [band.low, band.high]) free.delete(edge);
  return bounds;
}

function take(planned: Planned, free: Set<string>, bounds: Map<string, LineBand>): ChartSpec | null {
  const groups = planned.keys.map(want =>
    [...free].filter(key => (typeof want === 'string' ? key === want : want.test(key))),
  );
  const found = planned.first ? (groups.find(group => group.length > 0) ?? []) : [...new Set(groups.flat())];
  if (found.length === 0 && !planned.always) return null;
  for (const key of found) {
    free.delete(key);
    const band = bounds.get(key);
    if (!planned.plain || !band || !('low' in band)) continue;
    bounds.delete(key);
    for (const edge of [band.low, band.high]) free.add(edge); // each edge gets its own chart
  }
  const { title } = planned;
  return { id: title, title, unit: unitOf(found[0] ?? ''), lines: labelled(found.sort(bySide), bounds) };
}

/**
 * Adds a chart for each quantity that is logged separately for each environment tag. The chart has one line for each
 * combination of tag and side (training or validation).
 */
function byTag(free: Set<string>, tags: readonly string[], bounds: Map<string, LineBand>, group: ChartGroup): void {
  const things = new Map<string, string[]>();
  for (const key of [...free].sort(naturally)) {
    const [, tag, thing] = /^(?:train|val-env)\/([^/]+)\/(.+)$/.exec(key) ?? [];
    if (!tags.includes(tag)) continue;
    free.delete(key);
    const same = things.get(thing);
    if (same) same.push(key);
    else things.set(thing, [key]);
  }
  const apart = (thing: string) => Number(thing.startsWith('non-zero/'));
  for (const [thing, keys] of [...things].sort(([a], [b]) => apart(a) - apart(b))) {
    keys.sort(bySide);
    const title = thing.replaceAll('_', ' ').replaceAll('/', ' · ');
    group.charts.push({ id: `tag/${thing}`, title, unit: unitOf(thing), lines: labelled(keys, bounds) });
  }
}

function single(key: string, bounds: Map<string, LineBand>): ChartSpec {
  const rest = key.replace(/\/mean$/, '').replace(/^[^/]+\//, '');
  const title = `${sideOf(key)}${rest.replaceAll('_', ' ').replaceAll('/', ' · ')}`;
  return {
    id: key,
    title,
    unit: unitOf(key),
    lines: [{ key, label: title, colourOffset: colourOffset([key], 0), band: bounds.get(key) }],
  };
}

/**
 * Returns a prefix for the title of a key's chart. The prefix distinguishes two keys that differ only in their first
 * part.
 */
function sideOf(key: string): string {
  if (key.startsWith('val-env/')) return 'validation ';
  if (key.startsWith('critic/') && !/^critic\/(score|rewards|values|vf|advantages|returns|vpred)/.test(key))
    return 'critic ';
  if (key.startsWith('collapse_trajectory_sample/')) return 'trajectory ';
  if (key.startsWith('collapse_first_turn_sample/')) return 'first turn ';
  const lengths = /^(prompt|response)_length\/(?!mean$)/.exec(key);
  return lengths ? `${lengths[1]} length ` : '';
}

/** Sorts training keys before validation keys. Two training keys keep their order, and so do two validation keys. */
const bySide = (a: string, b: string) => Number(isValidation(a)) - Number(isValidation(b));
const isValidation = (key: string): boolean => key.startsWith('val-env/');

/**
 * Returns the colour offset of the i-th key of a chart. In a chart without training lines, validation lines start at
 * offset 1, because offset 0 is the colour of training.
 */
const colourOffset = (keys: readonly string[], i: number): number => i + (isValidation(keys[0]) ? 1 : 0);

/**
 * Returns the lines with the shortest labels that distinguish them, such as `train` or `val`, followed by the tag if
 * the keys have several tags.
 */
function labelled(keys: readonly string[], bounds: ReadonlyMap<string, LineBand>): ChartLine[] {
  const parts = keys.map(key => key.split('/'));
  const tags = new Set(parts.filter(part => part.length >= 3).map(part => part[1]));
  const names = new Set(parts.map(part => part[part.length - 1]));
  return keys.map((key, i) => {
    const [prefix, tag] = parts[i];
    const name = parts[i][parts[i].length - 1].replaceAll('_', ' ');
    const side = { 'val-env': 'val', charts: 'train' }[prefix] ?? prefix;
    const labelParts = [
      parts[i].length >= 3 || (names.size === 1 && keys.length > 1)
        ? side.replace(/^collapse_(.*)_sample$/, '$1').replaceAll('_', ' ')
        : '',
      parts[i].length >= 3 && tags.size > 1 ? tag : '',
      names.size > 1 || (keys.length === 1 && parts[i].length < 3) ? name : '',
    ];
    return {
      key,
      label: labelParts.filter(Boolean).join(' '),
      colourOffset: colourOffset(keys, i),
      band: bounds.get(key),
    };
  });
}

const naturally = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true });
