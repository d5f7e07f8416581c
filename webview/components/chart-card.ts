// The frame of a chart, the same on the dashboard and in the comparison: title, values and tools above, the plot below.
// What is in them comes from the page.
import { html, nothing, type TemplateResult } from 'lit';

type Content = TemplateResult | typeof nothing;

export interface ChartCardOptions {
  /** Key or id of the chart, by which the page finds it. */
  id: string;
  /** The accessible name. */
  label: string;
  /** The visible title, which may be a button. */
  title: TemplateResult | string;
  /** Key and description, shown on hover of the title. */
  hint?: string;
  large?: boolean;
  /** `waiting`: its values have been requested; `empty`: nothing has been logged. */
  state: 'drawn' | 'waiting' | 'empty';
  values: Content;
  tools?: TemplateResult;
  /** Can be dragged to another position by its head. */
  draggable?: boolean;
  /** The plot, or a table in its place. */
  content: Content;
}

export function chartCard(options: ChartCardOptions): TemplateResult {
  const { id, label, title, hint, large = false, state, values, tools, draggable = false, content } = options;
  const tag = state === 'drawn' ? nothing : state === 'waiting' ? 'waiting' : '';
  return html`<article class=${large ? 'chart large' : 'chart'} data-chart=${id} data-empty=${tag} aria-label=${label}>
    <header class="chart-head" draggable=${draggable ? 'true' : nothing}>
      <h3 title=${hint ?? nothing}>${title}</h3>
      <div class="chart-values">${values}</div>
      ${tools ? html`<div class="chart-tools">${tools}</div>` : nothing}
    </header>
    ${content}
  </article>`;
}

/** Name and colour of a line, where a chart has several lines. */
export interface NamedLine {
  label: string;
  colour: string;
  /** Shows the name only on hover of the value. */
  onHover?: boolean;
}

/** A value of a line in the head. */
export function chartValue(value: string, line?: NamedLine): TemplateResult {
  const swatch = line ? html`<span class="swatch" style="background:${line.colour}"></span>` : nothing;
  const label = line && !line.onHover ? html`<span class="muted">${line.label}</span>` : nothing;
  return html`<span class="chart-value" title=${line?.onHover ? line.label : nothing}
    >${swatch}${label}<strong>${value}</strong></span
  >`;
}
