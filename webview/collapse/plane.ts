// The plane of H(Z|X) (horizontal) and I(X;Z) (vertical): the four regimes as quadrants at the selected diagnosis's
// thresholds, the run's path, fading into the past, and the selected diagnosis as a ring with its 95 % intervals.
// H(Z|X) has a square-root scale because collapses happen near zero. Drawn like the small charts: a stretched unit
// square of SVG, with labels and ring in HTML over it.
import { ticksOf, valueRange, type Range } from '../dashboard/axis';
import { h, replaceChildren, setAttribute, svg } from '../shared/dom';
import { formatNumber, formatPercent, formatTick } from '../shared/format';
import { minimum } from '../../extension/common/lists';
import { regimeRule } from '../../extension/run-data/regimes';
import type { Estimate, PathPoint } from './run-series';

export interface Plane {
  element: HTMLElement;
  /** `path` holds all diagnoses, `present` is the index of the selected one; −1 before the first. */
  draw(path: readonly PathPoint[], present: number): void;
}

/** Segments' opacity halves with each so many diagnoses. */
const halfLife = 7;

const labels = [
  ['compressed', 'compressed reasoning'],
  ['diverse', 'diverse reasoning'],
  ['low-entropy', 'low-entropy collapse'],
  ['template', 'template collapse'],
] as const;

export function plane(scrub: (step: number) => void): Plane {
  const picture = svg('svg', { viewBox: '0 0 1 1', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  const field = h('div', { class: 'plane-field', role: 'img' });
  const across = h('div', { class: 'plane-across' });
  const up = h('div', { class: 'plane-up' });
  const caption = h('p', { class: 'plane-words muted' });
  const element = h(
    'figure',
    { class: 'plane' },
    h(
      'span',
      { class: 'plane-name-up', title: 'Mutual information of reasoning Z and prompt X, nats a token' },
      'I(X;Z) nats',
    ),
    up,
    field,
    across,
    h(
      'span',
      {
        class: 'plane-name-across',
        title: 'Entropy of the reasoning Z given its prompt X, nats a token; square-root scale',
      },
      'H(Z|X) nats a token',
    ),
    caption,
  );
  let shown: Layout = { path: [], scales: scalesOf([]), spots: [] };

  /** The diagnosis nearest to the pointer, within a twelfth of the field. */
  const nearest = (event: PointerEvent): PathPoint | undefined => {
    const { left, top, width, height } = field.getBoundingClientRect();
    const [x, y] = [(event.clientX - left) / width, (event.clientY - top) / height];
    const distances = shown.spots.map(([a, b]) => Math.hypot((a - x) * width, (b - y) * height));
    const least = minimum(distances);
    return least < Math.max(12, width / 12) ? shown.path[distances.indexOf(least)] : undefined;
  };
  field.addEventListener('pointermove', event => {
    const point = nearest(event);
    setAttribute(field, 'title', point ? `step ${point.step} · ${coordinates(point)}` : null);
    field.style.cursor = point ? 'pointer' : '';
  });
  field.addEventListener('click', event => {
    const point = nearest(event);
    if (point) scrub(point.step);
  });

  return {
    element,
    draw(path, present) {
      // A path is laid out once, however often its steps are gone through.
      if (shown.path !== path) {
        const scales = scalesOf(path);
        const spots = path.map(({ entropy, information }): [number, number] => [
          scales.x(entropy.value),
          scales.y(information.value),
        ]);
        shown = { path, scales, spots };
      }
      const { scales, spots } = shown;
      const { x, y } = scales;
      const now = path[present] as PathPoint | undefined;
      const lines = now
        ? {
            above: x(regimeRule.entropy),
            below: x(regimeRule.entropyAlone),
            y: y(now.judgement.thresholds.information),
          }
        : null;
      replaceChildren(
        picture,
        ...(lines ? quadrants(lines) : []),
        ...trail(spots, present),
        ...(now ? cross(now, scales) : []),
      );
      replaceChildren(
        field,
        picture,
        ...(lines
          ? labels.map(([name, text]) =>
              h('span', { class: `regime regime-${name}`, style: labelAnchor(name, lines) }, text),
            )
          : []),
        now &&
          h('span', {
            class: 'ring',
            style: `left:${percent(x(now.entropy.value))};top:${percent(y(now.information.value))}`,
          }),
      );
      replaceChildren(
        across,
        ...acrossTicks(scales.xMax).map(tick =>
          h('span', { class: 'tick', style: `left:${percent(x(tick))}` }, formatTick(tick, 'number')),
        ),
      );
      replaceChildren(
        up,
        ...ticksOf(scales.range, true).map(tick =>
          h('span', { class: 'tick', style: `top:${percent(y(tick))}` }, formatTick(tick, 'number')),
        ),
      );
      const text = now ? `Step ${now.step}, ${judged(now)}: ${coordinates(now)}` : 'No diagnosis up to this step';
      setAttribute(field, 'aria-label', `Plane of H(Z|X) and I(X;Z). ${text}`);
      replaceChildren(caption, text);
    },
  };
}

/** `template collapse (94 % sure)`. */
const judged = ({ judgement }: PathPoint): string =>
  `${judgement.regime} (${formatPercent(judgement.confidence)} sure)`;

function coordinates({ entropy, information, bound }: PathPoint): string {
  const interval = ({ low, high }: Estimate) =>
    Number.isFinite(low) && Number.isFinite(high) ? ` (${formatNumber(low)} to ${formatNumber(high)})` : '';
  return `H(Z|X) ${formatNumber(entropy.value)}${interval(entropy)} · I(X;Z) ${formatNumber(information.value)}${interval(information)} of at most ${formatNumber(bound)}`;
}

interface Layout {
  path: readonly PathPoint[];
  scales: Scales;
  /** In the unit square. */
  spots: [number, number][];
}

interface Scales {
  xMax: number;
  range: Range;
  /** To the unit square, from its upper left. */
  x(entropy: number): number;
  y(information: number): number;
}

function scalesOf(path: readonly PathPoint[]): Scales {
  let [low, high] = [0, 0.1];
  let xMax = 4 * regimeRule.entropy;
  for (const { entropy, information, judgement } of path) {
    const level = 1.6 * judgement.thresholds.information;
    for (const x of [entropy.value, entropy.high]) if (x > xMax && Number.isFinite(x)) xMax = x;
    for (const y of [information.value, information.low, information.high, level]) {
      if (y < low && Number.isFinite(y)) low = y;
      if (y > high && Number.isFinite(y)) high = y;
    }
  }
  [xMax, high] = [xMax * 1.04, high * 1.04];
  return {
    xMax,
    range: { min: low, max: high, step: valueRange(low, high, null).step },
    x: entropy => Math.sqrt(Math.max(0, Math.min(entropy, xMax)) / xMax),
    y: information => 1 - (information - low) / (high - low),
  };
}

/** Round values that a square-root scale keeps apart. */
const acrossTicks = (max: number): number[] => [0, 0.05, 0.2, 0.5, 1, 2, 3, 5, 8, 12].filter(tick => tick <= max);

const percent = (share: number): string => `${(100 * share).toFixed(3)}%`;

/** Thresholds in the unit square: of H(Z|X) above and below the threshold `y` of I(X;Z). */
interface ThresholdLines {
  above: number;
  below: number;
  y: number;
}

function quadrants({ above, below, y }: ThresholdLines): SVGElement[] {
  const area = (name: string, left: number, top: number, width: number, height: number) =>
    svg('rect', { class: `quadrant quadrant-${name}`, x: left, y: top, width, height });
  return [
    area('compressed', 0, 0, above, y),
    area('low-entropy', 0, y, below, 1 - y),
    area('template', below, y, 1 - below, 1 - y),
    svg('path', { class: 'threshold', d: `M${above} 0V${y}M${below} ${y}V1M0 ${y}H1` }),
  ];
}

/** A label in the outer corner of its quadrant, as wide as that. */
function labelAnchor(name: (typeof labels)[number][0], { above, below, y }: ThresholdLines): string {
  const left = name === 'compressed' || name === 'low-entropy';
  const top = name === 'compressed' || name === 'diverse';
  const x = top ? above : below;
  const width = left ? x : 1 - x;
  const across = left ? 'left:0' : 'right:0;text-align:right';
  return `${across};max-width:${percent(width)};${top ? 'top:0' : 'bottom:0'};max-height:${percent(top ? y : 1 - y)}`;
}

/**
 * The way up to the present, newest strongest, and what is still to come from there on, faintly. The style sheet keeps
 * old parts visible.
 */
function trail(spots: readonly [number, number][], present: number): SVGElement[] {
  const path = (name: string, from: number, to: number, age: number | null) => {
    const d = spots.slice(from, to + 1).map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(4)} ${y.toFixed(4)}`);
    const style = age === null ? null : `--fade:${(0.5 ** (age / halfLife)).toFixed(3)}`;
    return svg('path', { class: name, style, d: from === to ? `${d.join('')}h0` : d.join('') });
  };
  const parts: SVGElement[] = [];
  if (present < spots.length - 1) parts.push(path('future', Math.max(0, present), spots.length - 1, null));
  // Old segments are alike: they are one path, so that thousands of diagnoses stay cheap.
  const distinct = Math.max(0, present - 6 * halfLife);
  if (distinct > 0) parts.push(path('trail', 0, distinct, 6 * halfLife));
  for (let i = distinct; i < present; i++) parts.push(path('trail', i, i + 1, present - 1 - i));
  for (let i = distinct; i < present; i++) parts.push(path('stop', i, i, present - 1 - i));
  return parts;
}

/** The intervals through the present point. */
function cross({ entropy, information }: PathPoint, { x, y }: Scales): SVGElement[] {
  const [a, b] = [x(entropy.value), y(information.value)];
  const parts: string[] = [];
  if (Number.isFinite(entropy.low + entropy.high)) parts.push(`M${x(entropy.low)} ${b}H${x(entropy.high)}`);
  if (Number.isFinite(information.low + information.high))
    parts.push(`M${a} ${y(information.low)}V${y(information.high)}`);
  return [svg('path', { class: 'interval', d: parts.join('') })];
}
