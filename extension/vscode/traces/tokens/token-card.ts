// Hover card of a token: an aligned Markdown table of its values. Model text is shown as escaped inline code, so that
// VS Code does not interpret it as Markdown. Pure functions.
import { formatNumber, formatSigned } from '../../../common/numbers';
import type { ClipRange, TokenFacts } from './token-facts';

export interface CardToken {
  facts: TokenFacts;
  text: string;
  /** 1-based index of the token in the answer, and number of tokens in the answer. */
  location: [number, number];
}

/** The checkpoint that computed some of the card's values, and the run's clip range. */
export interface CardSource {
  /** Name of the checkpoint; undefined until the checkpoint has scored the episode. */
  checkpoint: string | undefined;
  step: number;
  clip: ClipRange | null;
}

/** Returns the card as Markdown. */
export function tokenCard(
  { facts, text, location: position }: CardToken,
  { checkpoint, step, clip }: CardSource,
): string {
  const { id, then, now, rank, entropy, advantage, ratio, clipped, kl, teacher, value, top, trained } = facts;
  const rows: [string, string | null][] = [
    ['log-prob at sampling', logprob(then)],
    [`log-prob at checkpoint`, logprob(now)],
    ['rank', rank === null ? null : String(rank)],
    ['entropy', number(entropy, ' nats')],
    ['advantage', advantage === null ? null : formatSigned(advantage)],
    ['ratio', ratio === null ? null : `${formatNumber(ratio)}${formatClip(clipped, clip)}`],
    ['KL to reference', kl === null ? null : formatSigned(kl)],
    ['log-prob under teacher', logprob(teacher)],
    ['value', number(value, '')],
    ['loss mask', trained ? '1, trained on' : '0, not trained on'],
  ];
  const known = rows.filter(([, cell]) => cell !== null);
  const table = ['| | |', '|:--|--:|', ...known.map(([name, cell]) => `| ${name} | ${cell} |`)].join('\n');
  const topTokens = top.map(({ text: piece, logprob: p, id: other }) => {
    const mark = other === id ? ' ◂' : '';
    return `| ${code(piece)}${mark} | ${percentOf(p)} |`;
  });
  const alternatives = topTokens.length === 0 ? '' : `\n\n| top tokens | p |\n|:--|--:|\n${topTokens.join('\n')}`;
  const when =
    checkpoint === undefined ? `then: step ${step}` : `sampled at step ${step} · checkpoint ${code(checkpoint)}`;
  return `${code(text)} · id ${id} · token ${position[0]} of ${position[1]}\n\n${table}${alternatives}\n\n${when}`;
}

const number = (value: number | null, unit: string): string | null =>
  value === null ? null : `${formatNumber(value)}${unit}`;

const logprob = (value: number | null): string | null =>
  value === null ? null : `${formatNumber(value)} (p ${percentOf(value)})`;

/** Formats a probability as a percentage, given its natural logarithm. */
function percentOf(value: number): string {
  const share = Math.exp(value) * 100;
  return share < 0.001 ? '< 0.001 %' : `${formatNumber(share)} %`;
}

function formatClip(clipped: boolean | null, clip: ClipRange | null): string {
  if (clipped === null || !clip) return '';
  const range = `${formatNumber(1 - clip.low)} … ${formatNumber(1 + clip.high)}`;
  return clipped ? `, **clipped** (${range})` : `, not clipped (${range})`;
}

/** Control characters and Unicode line separators. */
const unseen = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/**
 * Formats a text as inline code with visible blanks and line breaks, safe in a table cell. Replaces all characters that
 * could end the code. One of them is the carriage return, which ends a line in Markdown: VS Code could parse the text
 * after it as links and images.
 */
export function code(text: string): string {
  const visible = text
    .replace(/\n/g, '↵')
    .replace(/\t/g, '⇥')
    .replace(/\r/g, '␍')
    .replace(unseen, '�')
    .replace(/ /g, '␣')
    .replaceAll('|', '¦') // a bar ends a cell, including inside code
    .replaceAll('`', 'ˋ');
  return `\`${visible === '' ? '(nothing)' : visible}\``;
}
