// The lines of a chart: their labels, which distinguish them within the chart, their colours, and their bands. Colours show
// the side of a line (training or validation); lines of plug-ins, which have no side, have a colour each.
import { hue } from '../../common/palette';
import { metricName } from './metric-names';

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

/** Sorts training keys before validation keys. Two training keys keep their order, and so do two validation keys. */
export const bySide = (a: string, b: string) => Number(isValidation(a)) - Number(isValidation(b));
export const isValidation = (key: string): boolean => key.startsWith('val-env/');

/** Palette indices of training lines (and of lines without a side), and of validation lines, in order of use. */
const sideColours = {
  train: [hue.blue, hue.green, hue.sky, hue.purple],
  val: [hue.vermillion, hue.orange, hue.yellow],
};

/** Returns the palette index of each key of a chart. */
export function coloursOf(keys: readonly string[]): number[] {
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
export function labelled(keys: readonly string[], bounds: ReadonlyMap<string, LineBand>, title: string): ChartLine[] {
  const colours = coloursOf(keys);
  const parts = keys.map(key => key.split('/'));
  const tags = new Set(parts.filter(part => part.length >= 3).map(part => part[1]));
  const names = new Set(parts.map(part => part[part.length - 1]));
  const lines = keys.map((key, i) => {
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
  if (new Set(lines.map(({ label }) => label)).size === lines.length) return lines;
  const longer = keys.map(metricName);
  return lines.map((line, i) => ({ ...line, label: new Set(longer).size === lines.length ? longer[i] : line.key }));
}

/** Palette indices of the lines of a plug-in's chart, whose lines are no sides. */
const pluginColours = [hue.blue, hue.vermillion, hue.green, hue.purple, hue.sky, hue.orange, hue.yellow, hue.grey];

/** Returns a line that a plug-in computes, labelled with its name. */
export const computedLine = (key: string, index: number): ChartLine =>
  inOwnColour({ key, label: key.slice(key.lastIndexOf('/') + 1).replaceAll('_', ' '), colour: 0 }, index);

export const inOwnColour = (line: ChartLine, index: number): ChartLine => ({
  ...line,
  colour: pluginColours[index % pluginColours.length],
});
