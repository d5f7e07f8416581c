// What can be laid over a trace's tokens: one number each, as one of few shades, so that few decorations are needed and a legend can name
// them. Sequential scales are of one hue and grow with what is noteworthy; signed ones have a side of zero each. Pure.
import { formatNumber, formatSigned } from '../../protocol/numbers';
import type { TokenFacts } from './token-facts';

export const overlayKinds = ['none', 'logprob', 'entropy', 'advantage', 'ratio', 'kl', 'mask', 'value'] as const;
export type OverlayKind = (typeof overlayKinds)[number];

/** A token's shade: 0 is none, 1 to 5 of a sequential scale, −3 to 3 of a signed one. */
export type Shade = number;

export interface Overlay {
  scale: 'sequential' | 'signed';
  /** A checkpoint has to be asked where the episode does not hold it. */
  needsModel: boolean;
  value(facts: TokenFacts): number | null;
  /** Where the shades 1, 2 … begin, growing, of the value's size; null where the largest value of the text sets them. */
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
  mask: { scale: 'sequential', needsModel: false, value: facts => (facts.trained ? 1 : 0), edges: [1, 1] },
  value: { scale: 'signed', needsModel: true, value: facts => facts.value, edges: null },
};

/** What is painted: a shade a token, and the range of the values that there are. */
export interface Painted {
  shades: Shade[];
  range: [number, number] | null;
}

/** The shades of tokens under an overlay. */
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

/** The range as the legend says it; ratios as ratios. */
export function rangeWords(kind: OverlayKind, [low, high]: [number, number]): string {
  if (kind === 'mask') return low === high ? (low === 1 ? 'all trained on' : 'none trained on') : 'shaded: trained on';
  const format = kind === 'advantage' || kind === 'kl' || kind === 'value' ? formatSigned : formatNumber;
  const [from, to] = kind === 'ratio' ? [Math.exp(low), Math.exp(high)] : [low, high];
  return low === high ? format(from) : `${format(from)} … ${format(to)}`;
}
