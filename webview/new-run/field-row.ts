// A configuration key as a row of the form: title and key, control, description, and error. A value that differs from
// the preset is marked and can be reset.
import { html, nothing, type TemplateResult } from 'lit';
import type { Field } from '../../extension/protocol/new-run-page';
import { checkbox, dropdown, textField } from '../components/controls';
import type { FieldLimit } from './engine-field';

export interface FieldState {
  value: string;
  /** Whether the value is known; until then the row has a placeholder instead of a control. */
  known: boolean;
  /** Whether the value differs from the preset. */
  changed: boolean;
  problem: string | undefined;
  /** The limits that the chosen engine sets for this key. */
  limit: FieldLimit | undefined;
  /** Called when the user has entered a value. */
  onChange(value: string): void;
  /** Called when the user resets the key to the value of the preset. */
  onReset(): void;
}

export function fieldRow(field: Field, state: FieldState): TemplateResult {
  const { key, title, help } = field;
  const { changed, problem, limit, onReset } = state;
  return html`<div class=${changed ? 'field changed' : 'field'} data-key=${key}>
    <div class="field-name"><span>${title}</span><code class="muted">${key}</code></div>
    <div class="field-control">
      ${state.known ? controlOf(field, state) : html`<div class="skeleton-block"></div>`}
      <button
        class="plain link reset"
        type="button"
        title="Reset ${key} to the preset’s value"
        ?hidden=${!changed}
        @click=${onReset}
        >Reset</button
      >
    </div>
    <p class="field-help muted">${help}</p>
    <p class="limit" ?hidden=${limit === undefined}>${limit?.reason ?? nothing}</p>
    <p class="problem" role="alert" ?hidden=${problem === undefined}>${problem ?? nothing}</p>
  </div>`;
}

function controlOf({ kind, key, title, choices }: Field, { value, limit, onChange }: FieldState): TemplateResult {
  const label = `${title} (${key})`;
  const { disabled = false, disabledChoices = [] } = limit ?? {};
  if (kind === 'flag')
    return checkbox({ label, checked: value === 'true', disabled, onChange: ticked => onChange(String(ticked)) });
  if (kind !== 'choice') return textField({ label, value, class: kind, disabled, onInput: onChange });
  const all = choices.map(each => [each, each] as const);
  return dropdown({ label, choices: all, value, disabled: disabled || disabledChoices, onChange });
}
