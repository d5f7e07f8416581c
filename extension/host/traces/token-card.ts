// The card that a token shows on hover: one small aligned table of what is known of it, in Markdown. The model's text stands in it as
// code, escaped, so that it is neither rendered nor cut. Pure.
import { formatNumber, formatSigned } from '../../protocol/numbers';
import type { ClipRange, TokenFacts } from './token-facts';

export interface CardToken {
  facts: TokenFacts;
  text: string;
  /** Its number among the answer's tokens, from 1, and how many there are. */
  place: [number, number];
}

/** Where the figures of now come from. */
export interface CardSource {
  /** Name of the checkpoint, undefined before it was asked. */
  checkpoint: string | undefined;
  step: number;
  clip: ClipRange | null;
}

/** The card's Markdown. */
export function tokenCard({ facts, text, place }: CardToken, { checkpoint, step, clip }: CardSource): string {
  const { id, then, now, rank, entropy, advantage, ratio, clipped, kl, value, top, trained } = facts;
  const rows: [string, string | null][] = [
    ['log-prob then', logprob(then)],
    [`log-prob now`, logprob(now)],
    ['rank', rank === null ? null : String(rank)],
    ['entropy', number(entropy, ' nats')],
    ['advantage', advantage === null ? null : formatSigned(advantage)],
    ['ratio', ratio === null ? null : `${formatNumber(ratio)}${clipWords(clipped, clip)}`],
    ['KL to reference', kl === null ? null : formatSigned(kl)],
    ['value', number(value, '')],
    ['loss mask', trained ? '1, trained on' : '0, not trained on'],
  ];
  const known = rows.filter(([, cell]) => cell !== null);
  const table = ['| | |', '|:--|--:|', ...known.map(([name, cell]) => `| ${name} | ${cell} |`)].join('\n');
  const likely = top.map(({ text: piece, logprob: p, id: other }) => {
    const mark = other === id ? ' ◂' : '';
    return `| ${code(piece)}${mark} | ${percentOf(p)} |`;
  });
  const alternatives = likely.length === 0 ? '' : `\n\n| likeliest | p |\n|:--|--:|\n${likely.join('\n')}`;
  const when = checkpoint === undefined ? `then: step ${step}` : `then: step ${step} · now: ${code(checkpoint)}`;
  return `${code(text)} · id ${id} · token ${place[0]} of ${place[1]}\n\n${table}${alternatives}\n\n${when}`;
}

const number = (value: number | null, unit: string): string | null =>
  value === null ? null : `${formatNumber(value)}${unit}`;

const logprob = (value: number | null): string | null =>
  value === null ? null : `${formatNumber(value)} (p ${percentOf(value)})`;

/** A natural logarithm as a share. */
function percentOf(value: number): string {
  const share = Math.exp(value) * 100;
  return share < 0.001 ? '< 0.001 %' : `${formatNumber(share)} %`;
}

function clipWords(clipped: boolean | null, clip: ClipRange | null): string {
  if (clipped === null || !clip) return '';
  const range = `${formatNumber(1 - clip.low)} … ${formatNumber(1 + clip.high)}`;
  return clipped ? `, **clipped** (${range})` : `, not clipped (${range})`;
}

/** Characters that end a line for some reader of Markdown, or show nothing. */
const unseen = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/**
 * A text as inline code that shows blanks and line breaks, safe in a table's cell. No character is left that could end the code: Markdown
 * takes a carriage return for a line's end too, and what followed it would be read as links and pictures.
 */
export function code(text: string): string {
  const visible = text
    .replace(/\n/g, '↵')
    .replace(/\t/g, '⇥')
    .replace(/\r/g, '␍')
    .replace(unseen, '�')
    .replace(/ /g, '␣')
    .replaceAll('|', '¦') // a cell ends at a bar, even within code
    .replaceAll('`', 'ˋ');
  return `\`${visible === '' ? '(nothing)' : visible}\``;
}
