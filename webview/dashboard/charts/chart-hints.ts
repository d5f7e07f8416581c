// Texts about a chart: the tooltip of the title, the explanation in an enlarged chart, and the accessible name.
import { html, nothing, type TemplateResult } from 'lit';
import { formatValue } from '../../shared/format';
import type { ChartSpec } from '../../../extension/run-data/charts/catalogue';
import { isDerived } from '../../charts/derived-curves';
import { metricName } from '../../../extension/run-data/charts/metric-names';
import { nameOf } from '../../charts/panels';
import type { ChartContext } from './chart-context';

/** Returns the tooltip of the title: explanation of the chart, keys and descriptions of the lines, and the meaning of their bands. */
export function titleHint({ explanation, lines, against }: ChartSpec, { meaning }: ChartContext): string {
  const sentences = lines.map(({ key, band }) => {
    const edges = !band
      ? ''
      : 'low' in band
        ? `\nband: ${band.low} … ${band.high}`
        : band.side === 'val'
          ? '\nband: 95 % interval (Wilson) over the episodes'
          : '';
    if (isDerived(key)) return nameOf(key);
    return `${metricName(key)}\n${key}\n${meaning(key) ?? ''}`.trim() + edges;
  });
  if (against !== undefined) sentences.push(`x axis: ${nameOf(against)}`);
  if (sentences.length === 0) sentences.push('nothing logged yet');
  return [explanation ?? [], sentences].flat().join('\n\n');
}

/** Renders the explanation of an enlarged chart, and the list of its keys and their descriptions. */
export const explanation = ({ explanation, lines }: ChartSpec, { meaning }: ChartContext): TemplateResult =>
  html`${explanation === undefined ? nothing : html`<p class="chart-explanation">${explanation}</p>`}<dl
      class="chart-explanation"
    >
      ${lines.map(({ key }) => html`<dt>${isDerived(key) ? nameOf(key) : key}</dt><dd>${meaning(key) ?? ''}</dd>`)}
    </dl>`;

/** Returns the accessible name of the drawing: title and latest value of each line. */
export function nameOfPicture({ title, lines, unit }: ChartSpec, { store }: ChartContext): string {
  const values = lines.map(({ key, label }) => {
    const curve = store.curve(key);
    const row = curve?.lastFinite() ?? -1;
    return !curve || row < 0
      ? `${label}: nothing logged yet`
      : `${label}: ${formatValue(curve.values[row], unit)} at step ${store.steps[row]}`;
  });
  return `Chart of ${title}. ${values.join('; ')}`;
}

export const keysHint = ({ title }: ChartSpec): string =>
  `${title}: arrow keys move the crosshair, plus and minus zoom, Enter enlarges, f fills the page, m opens the menu`;
