// A chart as an SVG file for use in papers: the same lines, ranges, ticks and marks as on the page, plus title, legend
// and axis title. The file refers to no external resources.
import { appendAll } from '../../common/lists';
import type { Theme } from './chart-theme';
import { logTicks, relativePosition, progressTicks, ticksOf } from './axis';
import type { Point } from './curve';
import { glyphs, isSevere } from './chart-marks';
import { type PlotData, type PlotLine } from './plot-data';
import { axisTitles } from './format-x';
import { labelsOfX, labelsOfY } from './tick-labels';

/** Size of an exported picture in SVG units. The PNG has two pixels per unit. */
export const pictureSize = { width: 720, height: 400 };

const edge = { left: 64, right: 20, top: 44, bottom: 52 };
const noun = { step: 'step', time: 'time', episodes: 'episodes' };

/** Size of a picture, in SVG units. */
export interface PictureSize {
  width: number;
  height: number;
}

/**
 * Returns the area of a chart's lines inside its picture. The further lines of a title, and a legend that does not fit
 * beside it, are above the area.
 */
export function plotArea(data: PlotData, { width, height }: PictureSize) {
  const { rows } = legendOf(data, width);
  return { left: edge.left, right: width - edge.right, top: edge.top + rows * legendRow, bottom: height - edge.bottom };
}

/** Returns the SVG of a chart, in `width` × `height` user units. `id` must be unique among the pictures of a page. */
export function svgOf(data: PlotData, size: PictureSize, id = 'plot'): string {
  const { width, height } = size;
  const { x, y, log, theme } = data;
  const plot = plotArea(data, size);
  const atX = (value: number) => round(plot.left + relativePosition(value, x) * (plot.right - plot.left));
  const atY = (value: number) => round(plot.bottom - relativePosition(value, y, log) * (plot.bottom - plot.top));
  const muted = solid(theme.muted, theme);
  const text = (content: string, attributes: Record<string, string | number>) =>
    tag('text', attributes, escaped(content));
  const parts: string[] = [tag('rect', { width, height, fill: solid(theme.background, theme) })];
  const yTicks = log ? logTicks(y, true) : ticksOf(y, true);
  const yLabels = labelsOfY(yTicks, data.unit);
  for (const [i, value] of yTicks.entries()) {
    parts.push(
      tag('line', {
        x1: plot.left,
        x2: plot.right,
        y1: atY(value),
        y2: atY(value),
        stroke: muted,
        'stroke-opacity': value === 0 ? 0.5 : 0.2,
      }),
    );
    parts.push(text(yLabels[i], { x: plot.left - 8, y: atY(value) + 4, 'text-anchor': 'end', fill: muted }));
  }
  const xTicks = progressTicks(x, true, data.axis === 'time');
  const xLabels = labelsOfX(xTicks, data.axis);
  for (const [i, value] of xTicks.entries()) {
    parts.push(text(xLabels[i], { x: atX(value), y: plot.bottom + 26, 'text-anchor': 'middle', fill: muted }));
  }
  parts.push(text(axisTitles[data.axis], { x: plot.right, y: height - 8, 'text-anchor': 'end', fill: muted }));
  // A dot at the first step is drawn completely; a line that continues beyond a zoomed range is cut off at the edge.
  const isInside = data.lines.every(({ points }) => points.every(point => point.x >= x.min && point.x <= x.max));
  const room = isInside ? 3 : 0;
  const clip = tag(
    'clipPath',
    { id },
    tag('rect', {
      ...{ x: plot.left - room, y: plot.top - 3 },
      ...{ width: plot.right - plot.left + 2 * room, height: plot.bottom - plot.top + 6 },
    }),
  );
  const curves = data.lines.flatMap(line => lineOf(line, atX, atY));
  parts.push(tag('defs', {}, clip), tag('g', { 'clip-path': `url(#${id})`, fill: 'none' }, curves.join('')));
  for (const mark of data.marks) {
    const fill = solid(isSevere(mark.kind) ? theme.warning : theme.muted, theme);
    const said = tag('title', {}, escaped(`${noun.step} ${mark.event.step}: ${mark.event.message}`));
    parts.push(
      tag(
        'text',
        { x: atX(mark.x), y: plot.bottom + 12, 'text-anchor': 'middle', fill, 'font-size': 10 },
        said + glyphs[mark.kind],
      ),
    );
  }
  for (const [i, line] of titleLines(data, width).entries())
    parts.push(text(line, { x: plot.left, y: 22 + i * legendRow, 'font-size': 15, 'font-weight': 600 }));
  appendAll(parts, legendOf(data, width).parts);
  const about = { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img' };
  const font = {
    'font-family': theme.fontFamily.replaceAll('"', "'"),
    'font-size': 12,
    fill: solid(theme.foreground, theme),
  };
  return `${tag('svg', { ...about, ...font }, tag('title', {}, escaped(data.title)) + parts.join('\n'))}\n`;
}

function lineOf({ points, colour, width, dash, alpha, band }: PlotLine, atX: ToPixel, atY: ToPixel): string[] {
  const area = band && tag('path', { d: areaOf(band.low, band.high, atX, atY), fill: colour, 'fill-opacity': 0.14 });
  const stroke = { stroke: colour, 'stroke-width': width, 'stroke-opacity': alpha, 'stroke-linejoin': 'round' };
  const pattern: Record<string, string> = dash.length > 0 ? { 'stroke-dasharray': dash.join(' ') } : {};
  const dots = runsOf(points).flatMap(run =>
    run.length === 1 ? [tag('circle', { cx: atX(run[0].x), cy: atY(run[0].y), r: 2, fill: colour })] : [],
  );
  const path = runsOf(points)
    .map(run => `M${run.map(point => `${atX(point.x)} ${atY(point.y)}`).join('L')}`)
    .join('');
  return [...(area ? [area] : []), tag('path', { d: path, ...stroke, ...pattern }), ...dots];
}

type ToPixel = (value: number) => number;

/** Splits a line into its continuous parts. */
function runsOf(points: readonly Point[]): Point[][] {
  const runs: Point[][] = [];
  let run: Point[] = [];
  for (const point of points) {
    if (Number.isFinite(point.y)) run.push(point);
    else if (run.length > 0) {
      runs.push(run);
      run = [];
    }
  }
  return run.length > 0 ? [...runs, run] : runs;
}

function areaOf(low: readonly Point[], high: readonly Point[], atX: ToPixel, atY: ToPixel): string {
  const lows = runsOf(low);
  return runsOf(high)
    .map((run, i) => {
      const back = [...(lows[i] ?? [])].reverse();
      return `M${[...run, ...back].map(point => `${atX(point.x)} ${atY(point.y)}`).join('L')}Z`;
    })
    .join('');
}

const titleOf = ({ title, log }: PlotData): string => title + (log ? ' (logarithmic)' : '');

/** Width of a character of the title, rounded up. */
const titleCharacter = 8.2;

/** Returns the lines of the title: one if it fits, otherwise as many as its words need. */
function titleLines(data: PlotData, width: number): string[] {
  const most = Math.floor((width - edge.left - edge.right) / titleCharacter);
  const lines = [''];
  for (const word of titleOf(data).split(' ')) {
    const line = lines[lines.length - 1];
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= most) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Height of a row of the legend, and of a line of the title. */
const legendRow = 18;

/**
 * Returns the legend, line samples with names, and the number of rows that it and the title fill below the title's first
 * line: none if it fits beside the title, where it is right-aligned. The legend of a single line is empty.
 */
function legendOf(data: PlotData, width: number): { parts: string[]; rows: number } {
  const labels = new Map(data.lines.filter(line => !line.quiet).map(line => [line.label, line]));
  const named = [...labels.values()];
  const further = titleLines(data, width).length - 1;
  if (named.length < 2) return { parts: [], rows: further };
  const [left, right] = [edge.left, width - edge.right];
  const widthOf = ({ label }: PlotLine): number => label.length * 6.6 + 34;
  const total = named.reduce((sum, line) => sum + widthOf(line), 0);
  const isBeside = left + titleOf(data).length * titleCharacter + total <= right;
  let [at, row] = [isBeside ? right - total : left, isBeside ? 0 : further + 1];
  const parts = named.flatMap(line => {
    if (!isBeside && at > left && at + widthOf(line) > right) [at, row] = [left, row + 1];
    const { label, colour, width: stroke, dash } = line;
    const y = 18 + row * legendRow;
    const pattern: Record<string, string> = dash.length > 0 ? { 'stroke-dasharray': dash.join(' ') } : {};
    const sample = { x1: round(at), x2: round(at + 18), y1: y, y2: y, stroke: colour, 'stroke-width': stroke };
    const name = tag('text', { x: round(at + 23), y: y + 4 }, escaped(label));
    at += widthOf(line);
    return [tag('line', { ...sample, ...pattern }), name];
  });
  return { parts, rows: row };
}

const round = (value: number): number => Math.round(value * 100) / 100;

const escaped = (text: string): string =>
  text
    .replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '');

function tag(name: string, attributes: Record<string, string | number>, content = ''): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`);
  return content === '' ? `<${name}${written.join('')}/>` : `<${name}${written.join('')}>${content}</${name}>`;
}

/**
 * Blends a theme colour with the background and returns it as an opaque `#rrggbb`, because some programs read no other
 * notation.
 */
export function solid(colour: string, { background }: Theme): string {
  const [red, green, blue, alpha = 255] = channels(colour) ?? [];
  const under = channels(background);
  if (red === undefined) return colour;
  const mix = (over: number, below: number) => Math.round((over * alpha + below * (255 - alpha)) / 255);
  const mixed = under ? [mix(red, under[0]), mix(green, under[1]), mix(blue, under[2])] : [red, green, blue];
  return `#${mixed.map(value => value.toString(16).padStart(2, '0')).join('')}`;
}

function channels(colour: string): number[] | undefined {
  const hex = /^#([0-9a-f]{6})([0-9a-f]{2})?$/i.exec(colour);
  if (hex) return (hex[1] + (hex[2] ?? 'ff')).match(/../g)!.map(pair => Number.parseInt(pair, 16));
  const parts = /^rgba?\(([^)]+)\)$/
    .exec(colour)?.[1]
    .split(/[\s,/]+/)
    .map(Number);
  return parts && [parts[0], parts[1], parts[2], (parts[3] ?? 1) * 255];
}
