// The frame of a chart on the dashboard and in the comparison: title, values and tools above, the plot below. The pages
// provide the content.
import { html, nothing, type TemplateResult } from 'lit';

type Content = TemplateResult | typeof nothing;

export interface ChartCardOptions {
  /** Key or id of the chart; written to the element so that the page can find it. */
  id: string;
  /** Accessible name of the chart. */
  label: string;
  /** Visible title: a text, or a template such as a button. */
  title: TemplateResult | string;
  /** Tooltip of the title: key and description. */
  hint?: string;
  large?: boolean;
  /** Whether the chart fills the page. */
  full?: boolean;
  /** `waiting`: the values have been requested; `empty`: no value has been logged. */
  state: 'drawn' | 'waiting' | 'empty';
  values: Content;
  tools?: TemplateResult;
  /** Whether the user can drag the chart by its head to another position. */
  draggable?: boolean;
  /** The plot, or the table that replaces it. */
  content: Content;
}

export function chartCard(options: ChartCardOptions): TemplateResult {
  const {
    id,
    label,
    title,
    hint,
    large = false,
    full = false,
    state,
    values,
    tools,
    draggable = false,
    content,
  } = options;
  const tag = state === 'drawn' ? nothing : state === 'waiting' ? 'waiting' : '';
  const look = ['chart', large && 'large', full && 'full'].filter(Boolean).join(' ');
  return html`<article class=${look} data-chart=${id} data-empty=${tag} aria-label=${label}>
    <header class="chart-head" draggable=${draggable ? 'true' : nothing}>
      <h3 title=${hint ?? nothing}>${title}</h3>
      <div class="chart-values">${values}</div>
      ${tools ? html`<div class="chart-tools">${tools}</div>` : nothing}
    </header>
    ${content}
  </article>`;
}

/** Name and colour of a line in a chart with several lines. */
export interface NamedLine {
  label: string;
  colour: string;
  /** Whether the name is shown only as the tooltip of the value. */
  onHover?: boolean;
}

/** Renders a value in the chart's head. `line` is set if the chart has several lines; `hint` is shown in the tooltip. */
export function chartValue(value: string, line?: NamedLine, hint?: string): TemplateResult {
  const swatch = line ? html`<span class="swatch" style="background:${line.colour}"></span>` : nothing;
  const label = line && !line.onHover ? html`<span class="muted">${line.label}</span>` : nothing;
  const tooltip = [line?.onHover && line.label, hint].filter(Boolean).join(': ');
  return html`<span class="chart-value" title=${tooltip || nothing}>${swatch}${label}<strong>${value}</strong></span>`;
}
