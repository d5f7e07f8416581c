// The values in a chart's header, after the alarm symbol: the latest values with their change over the last ten steps,
// or the values at the crosshair.
import { html, nothing, type TemplateResult } from 'lit';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { chartValue } from '../../components/chart-card';
import { formatChange, formatValue } from '../../shared/format';
import type { ChartSpec } from '../../charts/catalogue';
import type { ChartContext } from './chart-context';
import { glyphs } from '../../charts/event-marks';
import { lineStyle } from '../../charts/plot-data';
import { changeOverTenSteps } from './recent-change';

export function chartValues(
  { lines, unit }: ChartSpec,
  { store, theme, alarm }: ChartContext,
  { hovered, clipped, openEvent }: { hovered: number | null; clipped: boolean; openEvent: (event: RunEvent) => void },
): TemplateResult {
  const raised = lines.map(({ key }) => alarm(key)).find(mark => mark !== undefined)?.event;
  const values = lines.map(({ key, label, colour }) => {
    const curve = store.curve(key);
    const row = curve?.lastFinite(hovered ?? curve.length - 1) ?? -1;
    const value = curve && row >= 0 ? curve.values[row] : Number.NaN;
    const isNamed = lines.length > 1 || key.startsWith('val-env/');
    const name = isNamed ? { label, colour: lineStyle(theme, 0, colour).colour, onHover: lines.length > 2 } : undefined;
    return chartValue(formatValue(value, unit), name);
  });
  const only = lines.length === 1 && hovered === null ? store.curve(lines[0].key) : undefined;
  const change = only ? changeOverTenSteps(store.steps, only) : Number.NaN;
  return html`${raised ? alarmSign(raised, openEvent) : nothing}${values}${
    Number.isFinite(change)
      ? html`<span class="muted" title="change over the last ten steps">${formatChange(change, unit)}</span>`
      : nothing
  }${clipped ? html`<span class="muted" title=${clippedHint}>clipped</span>` : nothing}`;
}

const clippedHint =
  'The y axis leaves out outliers: values more than three interquartile ranges below the lower or above the upper quartile';

const alarmSign = (alarm: RunEvent, openEvent: (event: RunEvent) => void): TemplateResult =>
  html`<button
    class="plain alarm-sign"
    type="button"
    title=${alarm.message}
    aria-label=${`alarm: ${alarm.message}`}
    @click=${() => openEvent(alarm)}
    >${glyphs.alarm}</button
  >`;
