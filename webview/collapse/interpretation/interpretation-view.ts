// The diagnosis next to the plane: interpretation, confidence, other signs of trouble, suggestions. Each part links to
// the section of docs/METRICS.md that explains it.
import { html, nothing, type TemplateResult } from 'lit';
import { link } from '../../components/controls';
import type { CollapseActions } from '../actions';
import type { Interpretation } from '../../../extension/run-data/interpretation/interpretation';
import type { Anchor, Sign } from '../../../extension/run-data/interpretation/warning-signs';

const confidences: Record<Interpretation['confidence'], { label: string; bars: number }> = {
  none: { label: 'No diagnosis', bars: 0 },
  low: { label: 'Low confidence', bars: 1 },
  moderate: { label: 'Moderate confidence', bars: 2 },
  high: { label: 'High confidence', bars: 3 },
};

export function interpretationView(interpretation: Interpretation, actions: CollapseActions): TemplateResult {
  const { headline, sentence, confidence, why: doubts, signs, advice } = interpretation;
  const { label, bars } = confidences[confidence];
  const meter = [1, 2, 3].map(level => html`<i class=${level <= bars ? 'full' : nothing}></i>`);
  return html`<section class="reading" aria-label="In plain words">
    <h2 class="headline">${headline}.</h2>
    ${sentence === '' ? nothing : html`<p>${sentence} ${why('collapse', actions)}</p>`}
    <p class="confidence" data-confidence=${confidence}>
      <span class="meter" aria-hidden="true">${meter}</span><strong>${label}:</strong>
      <span class="muted">${doubts}.</span>
    </p>
    ${signs.length > 0 ? signList(signs, actions) : nothing}
    <div>
      <h3>What to try</h3>
      <ul>
        ${advice.map(({ text, anchor }) => html`<li>${text} · ${why(anchor, actions)}</li>`)}
      </ul>
    </div>
  </section>`;
}

function signList(signs: readonly Sign[], actions: CollapseActions): TemplateResult {
  const items = signs.map(({ text, anchor, step }) => {
    const go = step === undefined ? nothing : html`${link(`go to step ${step}`, () => actions.go(step))} · `;
    return html`<li>${text} · ${go}${why(anchor, actions)}</li>`;
  });
  return html`<div>
    <h3>Other signs</h3>
    <ul>
      ${items}
    </ul>
  </div>`;
}

/** Renders a link to a section of docs/METRICS.md. */
function why(anchor: Anchor, { explain }: CollapseActions): TemplateResult {
  const section = anchor.replaceAll('-', ' ');
  return html`<button
    class="plain link"
    type="button"
    title="docs/METRICS.md, ${section}"
    aria-label="why: ${section}"
    @click=${() => explain(anchor)}
    >why</button
  >`;
}
