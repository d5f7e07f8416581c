// The sampled tokens of a turn with their log-probs. Tokens are shown as ids, because the page has no token texts and
// re-tokenising the text could produce different tokens. A less likely token has a stronger shade. The header of the
// turn has a summary.
import { html, nothing, type TemplateResult } from 'lit';
import type { Episode, EpisodeTurn } from '../../../extension/run-data/episode';
import { counted, formatNumber } from '../../shared/format';
import { hue, withAlpha } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';

export interface SampledToken {
  id: number;
  /** Log-prob (natural logarithm); null if the sampler returned none. */
  logprob: number | null;
  advantage: number | null;
}

/** Returns the sampled tokens of a turn. */
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

/** Formats a summary: `57 tokens · mean log-prob −0.43`. */
export function tokenSummary(tokens: readonly SampledToken[]): string {
  const known = tokens.flatMap(token => (token.logprob === null ? [] : [token.logprob]));
  const count = counted(tokens.length, 'token');
  if (known.length === 0) return count;
  return `${count} · mean log-prob ${formatNumber(known.reduce((total, value) => total + value, 0) / known.length)}`;
}

/** Tokens with this log-prob or a lower log-prob have the full shade. */
const surprise = -4;
/** Opacity of the full shade. It is low enough to keep the text readable. */
const fullest = 0.35;

/** Renders the token ids in a row; less likely tokens are shaded more strongly. */
export function tokenStrip(tokens: readonly SampledToken[], theme: Theme): TemplateResult {
  const colour = theme.palette[hue.orange];
  const cells = tokens.map(({ id, logprob, advantage }, i) => {
    const share = logprob === null ? 0 : Math.min(1, logprob / surprise);
    const parts = [
      `token ${i + 1}, id ${id}`,
      logprob !== null && `log-prob ${formatNumber(logprob)}`,
      advantage !== null && `advantage ${formatNumber(advantage)}`,
    ];
    const style = share > 0.02 ? `background:${withAlpha(colour, Number((share * fullest).toFixed(3)))}` : nothing;
    return html`<span class="token" style=${style} title=${parts.filter(Boolean).join(' · ')}>${id}</span>`;
  });
  return html`<div class="tokens" role="group" aria-label="Sampled tokens by id, shaded by log-prob">${cells}</div>`;
}
