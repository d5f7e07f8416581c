// Reward components of a turn or of an episode: the weighted sum, and the values before weights. Names come from the
// configuration and from environment code; they are inserted as plain text.
import { html, nothing, type TemplateResult } from 'lit';
import { formatSigned } from '../shared/format';

interface Scored {
  component_reward?: number;
  components?: Readonly<Record<string, number>>;
}

/** Renders the weighted sum, such as `components +0.06`; nothing without components. */
export const componentSum = ({ component_reward }: Scored): TemplateResult | typeof nothing =>
  component_reward === undefined
    ? nothing
    : html`<span title="Weighted sum of the reward components; not shown to the model"
        >components ${formatSigned(component_reward)}</span
      >`;

/** Renders a list of the values by component; nothing without values. */
export function componentValues({ components = {} }: Scored): TemplateResult | typeof nothing {
  const entries = Object.entries(components);
  if (entries.length === 0) return nothing;
  const values = entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${formatSigned(value)}</dd></div>`);
  return html`<dl class="components" title="Values of the reward components, before weights">${values}</dl>`;
}
