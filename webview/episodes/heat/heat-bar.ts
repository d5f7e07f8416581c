// The line above pictures with heat maps: which tokens are explained, the scale of the colours, and whose weights were
// used; or the progress of the computation, or why there are no maps.
import { html, nothing, type TemplateResult } from 'lit';
import { explainedParts, type ExplainedPart } from '../../../extension/protocol/heat-maps';
import { dropdown, link } from '../../components/controls';
import { fullHeat } from '../../components/heat-picture';
import { formatNumber } from '../../shared/format';
import { withAlpha } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';
import type { EpisodesActions } from '../actions';
import type { EpisodesState } from '../state';
import { mappedEpisodes, shownHeat } from './heat-state';
import { heatColour } from './heat-view';
import { heatKey } from './heats';

const labels: Readonly<Record<ExplainedPart, string>> = {
  response: 'Response',
  thought: 'Thought',
  answer: 'Answer',
};

const meaning =
  'Norm of gradient × feature: how much the log-prob of these tokens would vary, in first order, if each channel of the cell’s image feature varied by its own size. A cell that the answer does not depend on has 0.';

/** Renders the line; nothing if heat maps are off, or if no shown episode has pictures. */
export function heatBar(
  state: Pick<EpisodesState, 'settings' | 'shown' | 'heats' | 'theme'>,
  actions: EpisodesActions,
): TemplateResult | typeof nothing {
  const episodes = mappedEpisodes(state);
  if (episodes.length === 0) return nothing;
  const { explains } = state.settings;
  const choice = dropdown({
    label: 'Explained tokens',
    choices: explainedParts.map(part => [part, labels[part]] as const),
    value: explains,
    onChange: actions.explain,
  });
  const heats = episodes.flatMap(({ id }) => state.heats.get(heatKey(id, explains)) ?? []);
  const ready = heats.flatMap(heat => (heat.kind === 'ready' ? [heat.maps] : []));
  const failed = heats.find(heat => heat.kind === 'failed');
  const working = heats.find(heat => heat.kind === 'working');
  const weights = [...new Set(ready.map(({ checkpoint }) => checkpoint))].join(', ');
  return html`<section class="heat-bar" aria-label="Heat map"
    ><span title=${meaning}>Heat map of the</span>${choice}${
      ready.length > 0 ? scaleView(shownHeat(state)!.most, state.theme) : nothing
    }${weights === '' ? nothing : html`<span class="muted">weights of ${weights}</span>`}<span role="status"
      >${working ? html`<span class="muted">${working.text} …</span>` : nothing}${
        failed ? html`<span class="warning">${failed.text}</span> ${link('Try again', actions.retryHeat)}` : nothing
      }</span
    ></section
  >`;
}

function scaleView(most: number, theme: Theme): TemplateResult {
  const colour = heatColour(theme);
  const ramp = `background-image:linear-gradient(to right, ${withAlpha(colour, 0)}, ${withAlpha(colour, fullHeat)})`;
  return html`<span class="heat-scale" title=${meaning}
    ><span>0</span><span class="heat-ramp" style=${ramp} aria-hidden="true"></span
    ><span>${formatNumber(most)} nats</span
    ><span class="visually-hidden">norm of gradient times feature per cell</span></span
  >`;
}
