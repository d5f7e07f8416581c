// The panel of a correlation in a claim's figure: one dot for each step of each run, with the two metrics as its place. The
// dots are those from which the correlation is computed. All dots are one path, so that thousands of them stay small. Pure.
import { escapeHtml } from '../../common/html';
import { maximum, minimum } from '../../common/lists';
import { relativePosition, ticksOf, valueRange, type Range } from '../charts/axis';
import { unitOf } from '../charts/catalogue';
import type { Theme } from '../charts/chart-theme';
import { labelsOfY } from '../charts/tick-labels';
import type { MeasuredRun } from './run-measure';

/** The metrics of a panel, with their names. */
export interface Scatter {
  x: { metric: string; name: string };
  y: { metric: string; name: string };
}

const margin = { left: 64, right: 20, top: 36, bottom: 52 };

/** Returns the panel as an SVG element; undefined if no step has both values. */
export function scatterOf(
  { x, y }: Scatter,
  runs: readonly MeasuredRun[],
  { width, height }: { width: number; height: number },
  theme: Theme,
): string | undefined {
  const dots = runs.flatMap(({ steps }) =>
    steps.map(step => [step[x.metric], step[y.metric]]).filter(pair => pair.every(Number.isFinite)),
  );
  if (dots.length === 0) return undefined;
  const rangeOf = (axis: 0 | 1): Range => {
    const values = dots.map(dot => dot[axis]);
    return valueRange(minimum(values, Infinity), maximum(values, -Infinity), null);
  };
  const [across, up] = [rangeOf(0), rangeOf(1)];
  const [right, bottom] = [width - margin.right, height - margin.bottom];
  const placeX = (value: number): number =>
    Math.round(margin.left + relativePosition(value, across) * (right - margin.left));
  const placeY = (value: number): number => Math.round(bottom - relativePosition(value, up) * (bottom - margin.top));
  const [ticksX, ticksY] = [ticksOf(across, false), ticksOf(up, false)];
  const labelsX = labelsOfY(ticksX, unitOf(x.metric));
  const labelsY = labelsOfY(ticksY, unitOf(y.metric));
  const line = (from: string, to: string): string =>
    `<path d="M${from}L${to}" stroke="${theme.muted}" stroke-opacity="0.2"/>`;
  const text = (at: string, anchor: string, label: string, colour = theme.muted): string =>
    `<text ${at} text-anchor="${anchor}" fill="${colour}">${escapeHtml(label)}</text>`;
  const path = dots.map(([a, b]) => `M${placeX(a)} ${placeY(b)}h0`).join('');
  const title = `${y.name} against ${x.name}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="sans-serif" font-size="12">`,
    `<title>${escapeHtml(title)}</title><rect width="${width}" height="${height}" fill="${theme.background}"/>`,
    `<text x="${margin.left}" y="20" font-size="15" font-weight="bold" fill="${theme.foreground}">${escapeHtml(y.name)}</text>`,
    ...ticksY.map((tick, i) => {
      const at = placeY(tick);
      return (
        line(`${margin.left} ${at}`, `${right} ${at}`) + text(`x="${margin.left - 8}" y="${at + 4}"`, 'end', labelsY[i])
      );
    }),
    ...ticksX.map((tick, i) => text(`x="${placeX(tick)}" y="${bottom + 18}"`, 'middle', labelsX[i])),
    text(`x="${right}" y="${bottom + 38}"`, 'end', x.name),
    `<path d="${path}" stroke="${theme.palette[0]}" stroke-opacity="0.35" stroke-width="4" stroke-linecap="round" fill="none"/>`,
    '</svg>\n',
  ].join('\n');
}
