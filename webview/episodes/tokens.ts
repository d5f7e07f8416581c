// The sampled tokens of a turn by their log-probs. The page has ids, not pieces of text, and re-tokenising could lie; so tokens are
// shown as the ids that were sampled, shaded by surprise, and summed up in one line.
import type { Episode, EpisodeTurn } from '../../extension/protocol/run-folder';
import { h } from '../shared/dom';
import { counted, formatNumber } from '../shared/format';
import { hue, withAlpha } from '../shared/palette';
import type { Theme } from '../shared/theme';

export interface SampledToken {
  id: number;
  /** Natural logarithm; null where the sampler gave none. */
  logprob: number | null;
  advantage: number | null;
}

/** The sampled tokens within a turn's span. */
export function sampledTokens(
  { tokens }: Pick<Episode, 'tokens'>,
  { span: [from, to] }: Pick<EpisodeTurn, 'span'>,
): SampledToken[] {
  const sampled: SampledToken[] = [];
  for (let i = Math.max(0, from); i < Math.min(to, tokens.ids.length); i++) {
    if (tokens.mask[i] !== 1) continue;
    sampled.push({ id: tokens.ids[i], logprob: tokens.logprobs[i] ?? null, advantage: tokens.advantages?.[i] ?? null });
  }
  return sampled;
}

/** `57 tokens · mean log-prob −0.43`. */
export function tokenSummary(tokens: readonly SampledToken[]): string {
  const known = tokens.flatMap(token => (token.logprob === null ? [] : [token.logprob]));
  const count = counted(tokens.length, 'token');
  if (known.length === 0) return count;
  return `${count} · mean log-prob ${formatNumber(known.reduce((total, value) => total + value, 0) / known.length)}`;
}

/** Log-prob at and below which a token is shaded fully. */
const surprise = -4;
/** Opacity of the fullest shade, low enough that the text on it keeps its contrast. */
const fullest = 0.35;

/** The ids in a row, the less likely the stronger shaded. */
export function tokenStrip(tokens: readonly SampledToken[], theme: Theme): HTMLElement {
  const colour = theme.palette[hue.orange];
  const cells = tokens.map(({ id, logprob, advantage }, i) => {
    const share = logprob === null ? 0 : Math.min(1, logprob / surprise);
    const parts = [
      `token ${i + 1}, id ${id}`,
      logprob !== null && `log-prob ${formatNumber(logprob)}`,
      advantage !== null && `advantage ${formatNumber(advantage)}`,
    ];
    const style = share > 0.02 ? `background:${withAlpha(colour, Number((share * fullest).toFixed(3)))}` : null;
    return h('span', { class: 'token', style, title: parts.filter(Boolean).join(' · ') }, String(id));
  });
  return h(
    'div',
    { class: 'tokens', role: 'group', 'aria-label': 'Sampled tokens by id, shaded by surprise' },
    ...cells,
  );
}
