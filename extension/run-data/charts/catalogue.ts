// Assigns metrics to charts, and charts to groups. The metrics that show whether a run is healthy come first, then the
// metrics that an RL practitioner checks next. Every other metric is assigned to a group by its key, so a new metric
// gets a chart although this file does not name it.
import { appendAll } from '../../common/lists';
import type { Unit } from '../../common/format-values';
import type { ChartPlan } from '../../../envs/api/plugins/chart';
import { groupsOfCharts, ownStart } from './chart-plan';
import { matcher } from './key-pattern';
import {
  bySide,
  coloursOf,
  computedLine,
  inOwnColour,
  isValidation,
  labelled,
  type ChartLine,
  type LineBand,
} from './chart-lines';
import { metricName, quantityName } from './metric-names';

/** The settings of a chart that the user made. */
export interface Panel {
  /** Unique among the ids of charts: `panel 1`, `panel 2`, and so on. */
  readonly id: string;
  /** Empty for a title made of the expressions. */
  readonly title: string;
  /** One or more expressions, separated by semicolons. */
  readonly y: string;
  /** An expression; empty for the x axis of the page. */
  readonly x: string;
}

export interface ChartSpec {
  /**
   * Identifier of the chart, which stays the same throughout a run. The view settings store these identifiers for
   * enlarged, pinned and moved charts.
   */
  id: string;
  title: string;
  /** What the chart shows, if its plan says it. */
  explanation?: string;
  unit: Unit;
  lines: ChartLine[];
  /** Whether a plug-in lists the metrics of the chart. Each of them is also in a chart that is not listed. */
  listed?: boolean;
  /** Whether the chart shows the distribution of scores instead of lines. */
  scores?: boolean;
  /** The settings of a chart that the user made; undefined for the charts of the catalogue. */
  panel?: Panel;
  /** Key of the curve on the x axis; undefined for the x axis of the page. */
  against?: string;
}

/** Returns the keys that a chart reads: the keys of its lines, of its x axis, and of its bands. */
export const keysOf = ({ lines, against }: ChartSpec): string[] => [
  ...lines.map(({ key }) => key),
  ...(against === undefined ? [] : [against]),
  ...lines.flatMap(({ band }) => (!band ? [] : 'low' in band ? [band.low, band.high] : [band.episodes])),
];

export interface ChartGroup {
  id: string;
  title: string;
  charts: ChartSpec[];
}

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
  /** Charts of plug-ins (own-charts.ts). */
  own?: readonly ChartPlan[];
}

/**
 * Returns the chart groups of a run in display order. Each shown key occurs in exactly one chart, as a line or as an edge
 * of a band, and also in the charts of plug-ins that list it.
 */
export function arrange({ keys, scored = false, tag, own = [] }: Arranged): ChartGroup[] {
  const tags = tagsOf(keys);
  const hidden = tag !== undefined && tags.includes(tag) ? tags.filter(other => other !== tag) : [];
  const shown = keys.filter(key => key !== 'wall_s' && !hidden.includes(key.split('/')[1]));
  const free = new Set(shown);
  const bounds = boundsOf(free);
  const ofPlugins = own.flatMap(plan => chartsOfPlan(plan, shown, bounds));
  for (const { lines, listed } of ofPlugins) if (!listed) for (const { key } of lines) free.delete(key);
  const groups = groupsOfCharts.map(({ id, title, charts }) => ({
    ...{ id, title },
    charts: charts.flatMap(plan => take(plan, free, bounds)),
  }));
  if (scored) groups[0].charts.push({ id: 'scores', title: 'Scores', unit: 'number', lines: [], scores: true });
  byTag(
    free,
    tags,
    bounds,
    groups.find(({ id }) => id === 'environments')!,
  );
  appendAll(groups.find(({ id }) => id === 'plugins')!.charts, [...ofPlugins, ...unplanned(free, own)]);
  const other: ChartGroup = { id: 'other', title: 'Other', charts: [] };
  for (const key of [...free].sort(naturally)) {
    const at = groupsOfCharts.findIndex(({ rest }) => rest.test(key));
    (groups[at] ?? other).charts.push(chartOfKey(key, bounds));
  }
  return [...groups, other].filter(({ charts }) => charts.length > 0);
}

/** Returns the unit of a key's values, derived from its name. */
export function unitOf(key: string): Unit {
  const name = key.slice(key.lastIndexOf('/') + 1);
  if (/^timing_s\//.test(key) || name === 'time_per_step') return 'seconds';
  const share =
    /^(success|pg_clipfrac|pg_clipfrac_lower|vf_clipfrac|action_is_(valid|effective)|manager_invalid_action|most_frequent|overlap|cpu_machine|memory_machine|gpu_busy)$/;
  if (share.test(name) || /^retrieval_accuracy(@\d+)?$/.test(name)) return 'share';
  if (/^pass@\d+$/.test(name) || /(^|_)(ratio|rate)$/.test(name)) return 'share';
  if (/^plugin_charts\/[^/]*_(share|ratio|rate)\//.test(key)) return 'share';
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

/**
 * Returns the charts of a plan: none without a key, and several if the keys are to stand apart. The keys of its lines are
 * removed from `free`.
 * @param idOf returns the id of the chart of keys that end in `name`, if they are to stand apart
 */
function take(
  plan: ChartPlan,
  free: Set<string>,
  bounds: Map<string, LineBand>,
  idOf = (name: string): string => name,
): ChartSpec[] {
  const matching = (key: string): string[] =>
    key.includes('*') ? [...free].filter(matcher(key)) : free.has(key) ? [key] : [];
  const groups = plan.keys.map(want => firstFilled([want].flat().map(matching)));
  const found = plan.first ? firstFilled(groups) : [...new Set(groups.flat())];
  if (found.length === 0 && !plan.always) return [];
  for (const key of found) {
    free.delete(key);
    const band = bounds.get(key);
    if (!plan.plain || !band || !('low' in band)) continue;
    bounds.delete(key);
    for (const edge of [band.low, band.high]) free.add(edge); // each edge gets its own chart
  }
  const { name, title = inWords(name), unit, explanation, apart = false } = plan;
  const chart = (own: { id: string; title: string }, keys: string[]): ChartSpec => ({
    ...own,
    ...(explanation !== undefined && { explanation }),
    unit: unit ?? unitOf(keys[0] ?? ''),
    lines: labelled(keys.sort(bySide), bounds, own.title),
  });
  if (!apart) return [chart({ id: name, title }, found)];
  const last = (key: string): string => key.slice(key.lastIndexOf('/') + 1);
  return [...new Set(found.map(last))].sort(naturally).map(name => {
    const keys = found.filter(key => last(key) === name);
    return chart({ id: idOf(name), title: quantityName(keys[0]) }, keys);
  });
}

/** Returns the first list that is not empty; an empty list if all are. */
const firstFilled = (lists: readonly string[][]): string[] => lists.find(list => list.length > 0) ?? [];

/** Returns a name with spaces instead of underscores, as a title. */
function inWords(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
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
    const title = quantityName(keys[0]);
    group.charts.push({ id: `tag/${thing}`, title, unit: unitOf(thing), lines: labelled(keys, bounds, title) });
  }
}

/** Returns the charts of a plug-in's plan; no key is taken from other charts. */
function chartsOfPlan(plan: ChartPlan, shown: readonly string[], bounds: ReadonlyMap<string, LineBand>): ChartSpec[] {
  const id = `${ownStart}${plan.name}`;
  const charts = take(plan, new Set(shown), new Map(bounds), name => `${id}/${name}`);
  return charts.map(chart => {
    const { lines } = chart;
    const keys = lines.map(({ key }) => key);
    const own = {
      ...chart,
      id: plan.apart ? chart.id : id,
      ...(!keys.every(key => key.startsWith(`${id}/`)) && { listed: true }),
    };
    if (keys.every(key => key.startsWith(ownStart))) return { ...own, lines: keys.map(computedLine) };
    return { ...own, lines: keys.some(isValidation) ? lines : lines.map(inOwnColour) };
  });
}

/**
 * Returns the charts of computed lines without a plan. Runs of earlier versions have them, and runs in which an edit
 * replaced the lines of a chart by keys; the chart of its earlier lines then has another id than the chart of the keys.
 */
function unplanned(free: Set<string>, own: readonly ChartPlan[]): ChartSpec[] {
  const names = [...free].flatMap(key => /^plugin_charts\/([^/]+)\/[^/]+$/.exec(key)?.[1] ?? []);
  return [...new Set(names)].flatMap(name => {
    const pattern = `${ownStart}${name}/*`;
    const [chart] = chartsOfPlan({ name, keys: [pattern] }, [...free], new Map());
    for (const { key } of chart.lines) free.delete(key);
    const isReplaced = own.some(plan => plan.name === name);
    return [isReplaced ? { ...chart, id: pattern, title: `${chart.title} (computed lines)` } : chart];
  });
}

/** Returns the chart of one metric. */
export function chartOfKey(key: string, bounds: ReadonlyMap<string, LineBand> = new Map()): ChartSpec {
  const title = metricName(key);
  const line = { key, label: title, colour: coloursOf([key])[0], band: bounds.get(key) };
  return { id: key, title, unit: unitOf(key), lines: [line] };
}

const naturally = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true });
