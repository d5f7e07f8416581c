// Shared parts of the bars above the pages: the title of the run, a choice among a few alternatives, and the slider of
// the smoothing factor. The bar itself is a `header` with a class of the page's style sheet.
import { html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import type { RunSummary } from '../../extension/protocol/page-state';
import { runSwatch } from './run-swatch';
import { statusDot } from './status-dot';

/** Renders the colour, name and status of a run; `hint` is the tooltip. */
export const runTitle = (run: RunSummary, hint?: string): TemplateResult =>
  html`${runSwatch(run)}<h1 title=${hint ?? nothing}>${run.name}</h1> ${statusDot(run)}`;

export interface Choice<V extends string> {
  value: V;
  label: string;
  title?: string;
}

/** Renders a row of toggle buttons. The button of the current value is pressed. */
export function choices<V extends string>(
  label: string,
  alternatives: readonly Choice<V>[],
  chosen: V,
  onChoose: (value: V) => void,
): TemplateResult {
  const buttons = alternatives.map(
    ({ value, label: text, title }) =>
      html`<button
        class="choice"
        type="button"
        title=${title ?? nothing}
        aria-pressed=${String(value === chosen)}
        @click=${() => onChoose(value)}
        >${text}</button
      >`,
  );
  return html`<div class="choices" role="group" aria-label=${label}>${buttons}</div>`;
}

export interface SmoothingOptions {
  /** Smoothing factor, 0 to 0.99. */
  value: number;
  title?: string;
  /** Whether to show the value beside the slider. */
  withValue?: boolean;
  onChange(value: number): void;
}

export function smoothingSlider({ value, title, withValue = false, onChange }: SmoothingOptions): TemplateResult {
  const onInput = ({ target }: Event): void => onChange(Number((target as HTMLInputElement).value));
  return html`<label class="smoothing" title=${title ?? nothing}
    >smoothing<input
      type="range"
      min="0"
      max="0.99"
      step="0.01"
      aria-label="Smoothing"
      .value=${live(String(value))}
      @input=${onInput}
    />${withValue ? html`<output>${value.toFixed(2)}</output>` : nothing}</label
  >`;
}
