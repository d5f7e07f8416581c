// Token overlays of a trace. An overlay shows one value of each token, such as its log-prob, as one of at most seven
// shades. The number of shades is small, because each shade needs its own editor decoration. A sequential scale has one
// hue, and a higher shade is more intense. A signed scale has one hue for negative values and another hue for positive
// values. Pure functions. Names and meanings of the overlays are in ../trace-overlay.ts.
import { formatNumber, formatSigned } from '../../../common/numbers';
import type { TokenFacts } from './token-facts';

export const overlayKinds = [
  'none',
  'logprob',
  'entropy',
  'advantage',
  'ratio',
  'kl',
  'teacher',
  'mask',
  'value',
] as const;
export type OverlayKind = (typeof overlayKinds)[number];

/** Shade of a token: 0 for none, 1 to 5 on a sequential scale, −3 to 3 on a signed scale. */
export type Shade = number;

export interface Overlay {
  scale: 'sequential' | 'signed';
  /** Whether the overlay shows values that the episode does not record, so that a checkpoint must compute them. */
  needsModel: boolean;
  value(facts: TokenFacts): number | null;
  /**
   * Lower bounds of the shades, ascending: the smallest absolute value for shade 1, for shade 2, and so on. Null if the
   * bounds are fixed shares of the largest absolute value in the episode.
   */
  edges: readonly number[] | null;
}

const thirds = [1 / 100, 1 / 3, 2 / 3];

export const overlays: Record<Exclude<OverlayKind, 'none'>, Overlay> = {
  logprob: { scale: 'sequential', needsModel: false, value: facts => facts.then, edges: [0.1, 0.5, 1, 2, 4] },
  entropy: { scale: 'sequential', needsModel: true, value: facts => facts.entropy, edges: [0.1, 0.5, 1, 2, 3] },
  advantage: { scale: 'signed', needsModel: false, value: facts => facts.advantage, edges: null },
  ratio: {
    scale: 'signed',
    needsModel: true,
    value: facts => (facts.ratio === null ? null : Math.log(facts.ratio)),
    edges: [0.01, 0.1, 0.25],
  },
  kl: { scale: 'signed', needsModel: true, value: facts => facts.kl, edges: [0.01, 0.1, 0.5] },
  teacher: {
    scale: 'signed',
    needsModel: false,
    value: ({ then, teacher }) => (then === null || teacher === null ? null : then - teacher),
    edges: [0.1, 0.5, 2],
  },
  mask: { scale: 'sequential', needsModel: false, value: facts => (facts.trained ? 1 : 0), edges: [1, 1] },
  value: { scale: 'signed', needsModel: true, value: facts => facts.value, edges: null },
};

/** Shades per token, and the range of the values; the range is null if no token has a value. */
export interface Painted {
  shades: Shade[];
  range: [number, number] | null;
}

/** Returns the shades of tokens under an overlay. */
export function paint(kind: OverlayKind, facts: readonly TokenFacts[]): Painted {
  if (kind === 'none') return { shades: facts.map(() => 0), range: null };
  const overlay = overlays[kind];
  const values = facts.map(overlay.value);
  const known = values.filter(value => value !== null);
  if (known.length === 0) return { shades: facts.map(() => 0), range: null };
  let [low, high] = [Infinity, -Infinity];
  for (const value of known) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const edges = overlay.edges ?? thirds.map(part => part * largest);
  const shades = values.map(value => (value === null || largest === 0 ? 0 : shadeOf(value, edges, overlay.scale)));
  return { shades, range: [low, high] };
}

function shadeOf(value: number, edges: readonly number[], scale: Overlay['scale']): Shade {
  const size = edges.filter(edge => Math.abs(value) >= edge).length;
  return scale === 'signed' && value < 0 ? -size : size;
}

/** Formats the range of values for the legend; log-ratios are shown as ratios. */
export function formatRange(kind: OverlayKind, [low, high]: [number, number]): string {
  if (kind === 'mask')
    return low === high
      ? low === 1
        ? 'all tokens are trained on'
        : 'no token is trained on'
      : 'shaded tokens are trained on';
  const isSigned = kind !== 'none' && kind !== 'ratio' && overlays[kind].scale === 'signed';
  const format = isSigned ? formatSigned : formatNumber;
  const [from, to] = kind === 'ratio' ? [Math.exp(low), Math.exp(high)] : [low, high];
  return low === high ? format(from) : `${format(from)} … ${format(to)}`;
}
