// The marks of the plane: the regimes as quadrants, the run's path, and the intervals of the selected diagnosis. Older
// segments of the path are fainter, down to a minimum opacity in the style sheet.
import { html, nothing, svg, type TemplateResult } from 'lit';
import type { Scales, ThresholdLines } from './plane-layout';
import type { PathPoint } from '../../../extension/run-data/collapse-path';
import { percent } from './unit-square';

/** Number of diagnoses after which a segment's opacity is halved. */
const halfLife = 7;

const regimes = [
  ['compressed', 'compressed reasoning'],
  ['diverse', 'diverse reasoning'],
  ['low-entropy', 'low-entropy collapse'],
  ['template', 'template collapse'],
] as const;

export function quadrants({ above, below, y }: ThresholdLines): TemplateResult[] {
  const area = (name: string, left: number, top: number, width: number, height: number): TemplateResult =>
    svg`<rect class="quadrant quadrant-${name}" x=${left} y=${top} width=${width} height=${height}></rect>`;
  return [
    area('compressed', 0, 0, above, y),
    area('low-entropy', 0, y, below, 1 - y),
    area('template', below, y, 1 - below, 1 - y),
    svg`<path class="threshold" d="M${above} 0V${y}M${below} ${y}V1M0 ${y}H1"></path>`,
  ];
}

/**
 * Renders the names of the regimes. Each name is in the outer corner of its quadrant, and is no wider than the
 * quadrant.
 */
export const regimeLabels = (lines: ThresholdLines): TemplateResult[] =>
  regimes.map(([name, text]) => {
    const anchor = labelAnchor(name, lines);
    return html`<span class="regime regime-${name}" style=${anchor}>${text}</span>`;
  });

function labelAnchor(name: (typeof regimes)[number][0], { above, below, y }: ThresholdLines): string {
  const left = name === 'compressed' || name === 'low-entropy';
  const top = name === 'compressed' || name === 'diverse';
  const x = top ? above : below;
  const width = left ? x : 1 - x;
  const across = left ? 'left:0' : 'right:0;text-align:right';
  return `${across};max-width:${percent(width)};${top ? 'top:0' : 'bottom:0'};max-height:${percent(top ? y : 1 - y)}`;
}

/**
 * Draws the path through all diagnoses. Segments before the selected diagnosis become more transparent with age. All
 * segments after the selected diagnosis are drawn faintly.
 * @param spots coordinates of the diagnoses in the unit square
 * @param present index of the selected diagnosis
 */
export function trail(spots: readonly [number, number][], present: number): TemplateResult[] {
  const path = (name: string, from: number, to: number, age: number | null): TemplateResult => {
    const d = spots.slice(from, to + 1).map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(4)} ${y.toFixed(4)}`);
    const style = age === null ? nothing : `--fade:${(0.5 ** (age / halfLife)).toFixed(3)}`;
    return svg`<path class=${name} style=${style} d=${from === to ? `${d.join('')}h0` : d.join('')}></path>`;
  };
  const parts: TemplateResult[] = [];
  if (present < spots.length - 1) parts.push(path('future', Math.max(0, present), spots.length - 1, null));
  // All segments beyond a certain age have the same opacity and are drawn as a single path, because thousands of
  // elements would be slow.
  const distinct = Math.max(0, present - 6 * halfLife);
  if (distinct > 0) parts.push(path('trail', 0, distinct, 6 * halfLife));
  for (let i = distinct; i < present; i++) parts.push(path('trail', i, i + 1, present - 1 - i));
  for (let i = distinct; i < present; i++) parts.push(path('stop', i, i, present - 1 - i));
  return parts;
}

/**
 * Renders the 95 % intervals of the selected diagnosis, as a horizontal line for H(Z|X) and a vertical line for I(X;Z).
 */
export function intervals({ entropy, information }: PathPoint, { x, y }: Scales): TemplateResult {
  const [a, b] = [x(entropy.value), y(information.value)];
  const parts: string[] = [];
  if (Number.isFinite(entropy.low + entropy.high)) parts.push(`M${x(entropy.low)} ${b}H${x(entropy.high)}`);
  if (Number.isFinite(information.low + information.high))
    parts.push(`M${a} ${y(information.low)}V${y(information.high)}`);
  return svg`<path class="interval" d=${parts.join('')}></path>`;
}
