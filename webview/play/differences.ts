// Shows the differences that appear when reloaded code replays the episode with the same seed and the same actions.
import { html, nothing, type TemplateResult } from 'lit';
import type { PlayDifference } from '../../extension/protocol/environment-tools';
import { sideSection } from './side-section';

/** Maximum number of listed differences; further differences are only counted. */
const shownDifferences = 6;

/** Renders the differences. `steps` is the number of replayed actions. */
export function differencesView(differences: readonly PlayDifference[], steps: number): TemplateResult {
  if (differences.length === 0)
    return sideSection(
      'Reloaded',
      html`<p class="muted"
        >${
          steps === 0
            ? 'The new code produces the same initial state for this seed.'
            : 'The new code produces the same results for this seed and these actions.'
        }</p
      >`,
    );
  const rest = differences.length - shownDifferences;
  return sideSection(
    'Differences after the reload',
    html`<ul class="differences"
        >${differences.slice(0, shownDifferences).map(differenceView)}</ul
      >
      ${rest > 0 ? html`<p class="muted">and ${rest} more</p>` : nothing}`,
  );
}

function differenceView({ step, what, before, after }: PlayDifference): TemplateResult {
  const place = `${step === 0 ? 'initial state' : `step ${step}`} · ${what}`;
  return html`<li>
    <span class="muted">${place}</span>
    <div class="difference"><pre class="before">${before}</pre><pre class="after">${after}</pre></div>
  </li>`;
}
