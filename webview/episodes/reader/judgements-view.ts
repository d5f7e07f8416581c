// The judgements of an episode: by reward component, the score and the reply of each judge. All texts are inserted as
// plain text, because models wrote them.
import { html, nothing, type TemplateResult } from 'lit';
import type { Episode } from '../../../extension/run-data/episode';
import type { Judgement } from '../../../extension/run-data/judgement';
import { formatNumber } from '../../shared/format';

/** Renders the judgements; nothing if the episode was not judged. */
export const judgementsView = ({ judgements = {} }: Pick<Episode, 'judgements'>): TemplateResult[] =>
  Object.entries(judgements).flatMap(([component, list]) => list.map(judgement => judgementView(component, judgement)));

function judgementView(component: string, { model, score, text, cached, cost }: Judgement): TemplateResult {
  const facts = [
    ...(cached ? ['known from an earlier request'] : []),
    ...(cost > 0 ? [`cost ${formatNumber(cost)}`] : []),
  ];
  return html`<details class="judgement">
    <summary
      >${component}, judged by ${model}:
      ${score === null ? html`<span class="warning">no score</span>` : html`<strong>${formatNumber(score)}</strong>`}${
        facts.length > 0 ? html` <span class="muted">${facts.join(' · ')}</span>` : nothing
      }</summary
    >
    <pre class="raw">${text}</pre>
  </details>`;
}
