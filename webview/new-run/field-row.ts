// A configuration key as a row of the form: title and key, control, description, and error. A value that differs from
// the preset's is marked and can be reset.
import type { Field } from '../../extension/protocol/new-run-page';
import { h, replaceChildren, setText } from '../shared/dom';
import { checkbox, dropdown, textField } from '../shared/toolkit';

export interface FieldEvents {
  /** The user entered a value. */
  onChange(value: string): void;
  /** The user reset the key to the preset's value. */
  onReset(): void;
}

export class FieldRow {
  readonly element: HTMLElement;
  private readonly control: HTMLElement;
  private readonly problem = h('p', { class: 'problem', role: 'alert' });
  private readonly reset: HTMLButtonElement;
  private value = '';

  constructor(
    readonly field: Field,
    private readonly events: FieldEvents,
  ) {
    const { key, title, help } = field;
    this.control = this.controlOf(field);
    this.reset = h(
      'button',
      { class: 'plain link reset', type: 'button', title: `Reset ${key} to the preset’s value` },
      'Reset',
    );
    this.reset.addEventListener('click', () => events.onReset());
    this.element = h(
      'div',
      { class: 'field', 'data-key': key },
      h('div', { class: 'field-name' }, h('span', {}, title), h('code', { class: 'muted' }, key)),
      h('div', { class: 'field-control' }, this.control, this.reset),
      h('p', { class: 'field-help muted' }, help),
      this.problem,
    );
  }

  /** Shows a value; `changed` if it differs from the preset's. A control that is being edited is not overwritten. */
  show(value: string, changed: boolean, problem: string | undefined): void {
    this.element.classList.toggle('changed', changed);
    this.reset.hidden = !changed;
    setText(this.problem, problem ?? '');
    this.problem.hidden = problem === undefined;
    if (value === this.value || this.element.contains(document.activeElement)) return;
    this.write(value);
  }

  /** Shows a value regardless of the focus. */
  write(value: string): void {
    this.value = value;
    if (this.field.kind === 'flag') (this.control as HTMLElement & { checked: boolean }).checked = value === 'true';
    else (this.control as HTMLElement & { value: string }).value = value;
  }

  private controlOf({ kind, key, title, choices }: Field): HTMLElement {
    const label = `${title} (${key})`;
    const changed = (value: string) => {
      if (value === this.value) return; // a control also reports values written by code
      this.value = value;
      this.events.onChange(value);
    };
    if (kind === 'flag') return checkbox(label, ticked => changed(String(ticked)));
    if (kind !== 'choice') return textField({ label, onInput: changed, class: kind });
    return dropdown({ label, choices: choices.map(value => [value, value] as const), value: '', onChange: changed });
  }
}

/** The rows of a group under its title. */
export function fieldSection(title: string, rows: readonly FieldRow[]): HTMLElement {
  const section = h('section', { class: 'field-group' });
  replaceChildren(section, h('h2', {}, title), ...rows.map(({ element }) => element));
  return section;
}
