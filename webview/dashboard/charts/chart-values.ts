// The values in a chart's header, after the alarm symbol: the latest values with their change over the last ten steps,
// or the values at the crosshair.
import { html, nothing, type TemplateResult } from 'lit';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { chartValue } from '../../components/chart-card';
import { formatChange, formatValue } from '../../shared/format';
import type { Limits } from '../../../extension/run-data/charts/axis';
import type { ChartSpec } from '../../../extension/run-data/charts/catalogue';
import type { Curve } from '../../../extension/run-data/charts/curve';
import type { ChartContext } from './chart-context';
import { glyphs } from '../../../extension/run-data/charts/chart-marks';
import { lineStyle } from '../../../extension/run-data/charts/plot-data';
import { changeOverTenSteps } from './recent-change';

/** If the names of the lines have more characters in total, the head shows only their values. */
const longestNames = 18;

interface ValuesOptions {
  /** Row of the crosshair; null if it is hidden. */
  hovered: number | null;
  clipped: boolean;
  limits: Limits | null;
  openEvent(event: RunEvent): void;
}

/** Renders the values. While the lines are smoothed, the values are smoothed too, and a tooltip has the logged value. */
export function chartValues(
  { lines, unit }: ChartSpec,
  { store, theme, smoothing, alarm }: ChartContext,
  { hovered, clipped, limits, openEvent }: ValuesOptions,
): TemplateResult {
  const raised = lines.map(({ key }) => alarm(key)).find(mark => mark !== undefined)?.event;
  const onHover = lines.length > 2 || lines.reduce((length, { label }) => length + label.length, 0) > longestNames;
  const values = lines.map(({ key, label, colour }) => {
    const value = valueAt(store.smoothed(key, smoothing), hovered);
    const raw = smoothing > 0 ? valueAt(store.curve(key), hovered) : Number.NaN;
    const hint = Number.isFinite(raw) ? `smoothed; the logged value is ${formatValue(raw, unit)}` : undefined;
    const isNamed = lines.length > 1 || key.startsWith('val-env/');
    const name = isNamed ? { label, colour: lineStyle(theme, 0, colour).colour, onHover } : undefined;
    return chartValue(formatValue(value, unit), name, hint);
  });
  const only = lines.length === 1 && hovered === null ? store.smoothed(lines[0].key, smoothing) : undefined;
  const change = only ? changeOverTenSteps(store.steps, only) : Number.NaN;
  return html`${raised ? alarmSign(raised, openEvent) : nothing}${values}${
    Number.isFinite(change)
      ? html`<span class="muted" title="change over the last ten steps">${formatChange(change, unit)}</span>`
      : nothing
  }${clipped ? html`<span class="muted" title=${clippedHint}>clipped</span>` : nothing}${
    limits ? html`<span class="muted" title="The user has set an end of the y axis">limited</span>` : nothing
  }`;
}

/** Returns the newest value at or before a row, or the newest of all if `row` is null; NaN without a value. */
function valueAt(curve: Curve | undefined, row: number | null): number {
  const at = curve?.lastFinite(row ?? undefined) ?? -1;
  return curve && at >= 0 ? curve.values[at] : Number.NaN;
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
