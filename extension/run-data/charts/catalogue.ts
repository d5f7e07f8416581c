// Assigns metrics to charts, and charts to groups. The metrics that show whether a run is healthy come first, then the
// metrics that an RL practitioner checks next. Every other metric is assigned to a group by its key, so a new metric
// gets a chart although this file does not name it.
import type { Unit } from '../../common/format-values';
import { hue } from '../../common/palette';
import { groupsOfCharts, type Planned } from './chart-plan';
import { metricName, quantityName } from './metric-names';

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
   * Palette index of the line. Training lines and other lines have cool colours, validation lines have warm ones, so
   * that each side has the same colour in every chart.
   */
  colour: number;
  band?: LineBand;
}

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
  unit: Unit;
  lines: ChartLine[];
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
    charts: charts.flatMap(planned => take(planned, free, bounds)),
  }));
  if (scored) groups[0].charts.push({ id: 'scores', title: 'Scores', unit: 'number', lines: [], scores: true });
  byTag(
    free,
    tags,
    bounds,
    groups.find(({ id }) => id === 'environments')!,
  );
  ofPlugins(
    free,
    groups.find(({ id }) => id === 'plugins')!,
  );
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

/** Returns the charts of a planned chart: none without a key, and several if the keys are to stand apart. */
function take(planned: Planned, free: Set<string>, bounds: Map<string, LineBand>): ChartSpec[] {
  const groups = planned.keys.map(want => {
    if (want instanceof RegExp) return [...free].filter(key => want.test(key));
    const key = [want].flat().find(each => free.has(each));
    return key === undefined ? [] : [key];
  });
  const found = planned.first ? (groups.find(group => group.length > 0) ?? []) : [...new Set(groups.flat())];
  if (found.length === 0 && !planned.always) return [];
  for (const key of found) {
    free.delete(key);
    const band = bounds.get(key);
    if (!planned.plain || !band || !('low' in band)) continue;
    bounds.delete(key);
    for (const edge of [band.low, band.high]) free.add(edge); // each edge gets its own chart
  }
  const { id, title, apart = false } = planned;
  const chart = (own: { id: string; title: string }, keys: string[]): ChartSpec => ({
    ...own,
    unit: unitOf(keys[0] ?? ''),
    lines: labelled(keys.sort(bySide), bounds, own.title),
  });
  if (!apart) return [chart({ id, title }, found)];
  const last = (key: string): string => key.slice(key.lastIndexOf('/') + 1);
  return [...new Set(found.map(last))].sort(naturally).map(name => {
    const keys = found.filter(key => last(key) === name);
    return chart({ id: name, title: quantityName(keys[0]) }, keys);
  });
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

/** Adds the charts that plug-ins define (`plugin_charts/<chart>/<line>`), each with all its lines. */
function ofPlugins(free: Set<string>, group: ChartGroup): void {
  const charts = new Map<string, ChartLine[]>();
  for (const key of [...free]) {
    const [, name, line] = /^plugin_charts\/([^/]+)\/([^/]+)$/.exec(key) ?? [];
    if (name === undefined) continue;
    free.delete(key);
    const lines = charts.get(name) ?? [];
    lines.push({ key, label: line.replaceAll('_', ' '), colour: pluginColours[lines.length % pluginColours.length] });
    charts.set(name, lines);
  }
  for (const [name, lines] of charts) {
    const words = name.replaceAll('_', ' ');
    const title = words.charAt(0).toUpperCase() + words.slice(1);
    group.charts.push({ id: `plugin_charts/${name}`, title, unit: unitOf(lines[0].key), lines });
  }
}

/** Palette indices of the lines of a plug-in's chart, whose lines are no sides. */
const pluginColours = [hue.blue, hue.vermillion, hue.green, hue.purple, hue.sky, hue.orange, hue.yellow, hue.grey];

/** Returns the chart of one metric. */
export function chartOfKey(key: string, bounds: ReadonlyMap<string, LineBand> = new Map()): ChartSpec {
  const title = metricName(key);
  const line = { key, label: title, colour: coloursOf([key])[0], band: bounds.get(key) };
  return { id: key, title, unit: unitOf(key), lines: [line] };
}

/** Sorts training keys before validation keys. Two training keys keep their order, and so do two validation keys. */
const bySide = (a: string, b: string) => Number(isValidation(a)) - Number(isValidation(b));
const isValidation = (key: string): boolean => key.startsWith('val-env/');

/** Palette indices of training lines (and of lines without a side), and of validation lines, in order of use. */
const sideColours = {
  train: [hue.blue, hue.green, hue.sky, hue.purple],
  val: [hue.vermillion, hue.orange, hue.yellow],
};

/** Returns the palette index of each key of a chart. */
function coloursOf(keys: readonly string[]): number[] {
  const used = { train: 0, val: 0 };
  return keys.map(key => {
    const side = isValidation(key) ? 'val' : 'train';
    return sideColours[side][used[side]++ % sideColours[side].length];
  });
}

/**
 * Returns the lines with the shortest labels that distinguish them, such as `train` or `val`, followed by the tag if
 * the keys have several tags. A single line without a side has the title of its chart.
 */
function labelled(keys: readonly string[], bounds: ReadonlyMap<string, LineBand>, title: string): ChartLine[] {
  const colours = coloursOf(keys);
  const parts = keys.map(key => key.split('/'));
  const tags = new Set(parts.filter(part => part.length >= 3).map(part => part[1]));
  const names = new Set(parts.map(part => part[part.length - 1]));
  return keys.map((key, i) => {
    const [prefix, tag] = parts[i];
    const name = parts[i][parts[i].length - 1].replace(/_(tokens_per_s|machine)$/, '').replaceAll('_', ' ');
    const side = { 'val-env': 'val', charts: 'train' }[prefix] ?? prefix;
    const labelParts = [
      parts[i].length >= 3 || (names.size === 1 && keys.length > 1)
        ? side.replace(/^collapse_(.*)_sample$/, '$1').replaceAll('_', ' ')
        : '',
      parts[i].length >= 3 && tags.size > 1 ? tag : '',
      names.size > 1 ? name : keys.length === 1 && parts[i].length < 3 ? title : '',
    ];
    return {
      key,
      label: labelParts.filter(Boolean).join(' '),
      colour: colours[i],
      band: bounds.get(key),
    };
  });
}

const naturally = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true });
