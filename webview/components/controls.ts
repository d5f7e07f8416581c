// The toolkit's controls as templates. Each render writes the value from the state to the control, and callbacks report
// changes by the user. Before `registerToolkit` is called (and in tests that do not call it), the elements are unknown
// tags without behaviour; even then, callers can set their values and dispatch events on them.
import { html, nothing, noChange, type TemplateResult } from 'lit';
import { Directive, directive, type ChildPart, type ElementPart } from 'lit/directive.js';
import { live } from 'lit/directives/live.js';
import { setAttribute } from '../shared/dom';
import { icon, type IconName } from './icon';

export interface ButtonOptions {
  /** The button's text, or its accessible name if it only has an icon. */
  label: string;
  icon?: IconName;
  /** Whether to show the icon without the label. */
  iconOnly?: boolean;
  primary?: boolean;
  title?: string;
  /** State of a toggle button; undefined for other buttons. */
  pressed?: boolean;
  /**
   * `soft` sets `aria-disabled` only, because a focused element with `disabled` would swallow all keys, including the
   * editor's shortcuts. The click handler must ignore clicks on a soft-disabled button.
   */
  disabled?: boolean | 'soft';
  hidden?: boolean;
  /** Whether the button opens a menu; sets `aria-haspopup`. */
  hasPopup?: boolean;
  onClick(event: Event): void;
}

export function button(options: ButtonOptions): TemplateResult {
  const { label, iconOnly = false, primary, title, pressed, disabled = false, hidden = false, hasPopup } = options;
  const appearance = iconOnly ? 'icon' : primary ? 'primary' : 'secondary';
  // The toolkit reads the attribute `appearance` only once. Later changes must therefore be written to the property of
  // the same name.
  return html`<vscode-button
    aria-label=${iconOnly ? label : nothing}
    aria-pressed=${pressed === undefined ? nothing : String(pressed)}
    aria-haspopup=${hasPopup ? 'menu' : nothing}
    aria-disabled=${disabled === 'soft' ? 'true' : nothing}
    appearance=${appearance}
    .appearance=${appearance}
    title=${title ?? (iconOnly ? label : nothing)}
    ?disabled=${disabled === true}
    ?hidden=${hidden}
    @click=${options.onClick}
    >${options.icon === undefined ? nothing : icon(options.icon)}${iconOnly ? nothing : label}</vscode-button
  >`;
}

export interface TextFieldOptions {
  label: string;
  value: string;
  placeholder?: string;
  class?: string;
  title?: string;
  readonly?: boolean;
  disabled?: boolean;
  onInput(value: string): void;
  /** Called with the text when Enter is pressed. */
  onEnter?(value: string): void;
}

/** Renders a text field. Pages find the element by its CSS class. */
export function textField(options: TextFieldOptions): TemplateResult {
  const { label, value, placeholder, title, readonly = false, disabled = false, onInput, onEnter } = options;
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !onEnter) return;
    event.preventDefault();
    onEnter(valueOf(event));
  };
  return html`<vscode-text-field
    class=${options.class ?? nothing}
    placeholder=${placeholder ?? nothing}
    title=${title ?? nothing}
    ?readonly=${readonly}
    ?disabled=${disabled}
    @input=${(event: Event) => onInput(valueOf(event))}
    @keydown=${onKey}
    ${fieldValue(value)}
    ${lastingLabel(label)}
  ></vscode-text-field>`;
}

export interface DropdownOptions<V extends string> {
  label: string;
  choices: readonly (readonly [value: V, text: string])[];
  value: V;
  /** The choices that are listed but cannot be selected. True disables the whole control. */
  disabled?: readonly V[] | boolean;
  onChange(value: V): void;
}

export function dropdown<V extends string>(options: DropdownOptions<V>): TemplateResult {
  const { label, choices, value, disabled = [], onChange } = options;
  const onChoice = (event: Event): void => {
    const chosen = choices.find(([choice]) => choice === valueOf(event));
    if (chosen) onChange(chosen[0]);
  };
  const isOff = (choice: V): boolean => typeof disabled !== 'boolean' && disabled.includes(choice);
  const items = choices.map(
    ([choice, text]) => html`<vscode-option value=${choice} ?disabled=${isOff(choice)}>${text}</vscode-option>`,
  );
  return html`<vscode-dropdown aria-label=${label} ?disabled=${disabled === true} @change=${onChoice}
    >${items}${chosenValue(value)}</vscode-dropdown
  >`;
}

export interface CheckboxOptions {
  label: string;
  checked: boolean;
  disabled?: boolean;
  onChange(checked: boolean): void;
}

export function checkbox({ label, checked, disabled = false, onChange }: CheckboxOptions): TemplateResult {
  // The toolkit's checkbox emits `change` both when the user clicks it and when code writes `checked`. To skip the
  // events that code has caused, the listener ignores an event whose value equals the rendered value.
  const onTick = ({ target }: Event): void => {
    const now = (target as HTMLElement & { checked: boolean }).checked;
    if (now !== checked) onChange(now);
  };
  return html`<vscode-checkbox
    ?disabled=${disabled}
    @change=${onTick}
    .checked=${live(checked)}
    ${lastingLabel(label)}
  ></vscode-checkbox>`;
}

/** Renders a button that looks like a link within a sentence. */
export const link = (label: string, onClick: () => void): TemplateResult =>
  html`<button class="plain link" type="button" @click=${onClick}>${label}</button>`;

const valueOf = (event: Event): string => (event.currentTarget as HTMLElement & { value: string }).value;

/**
 * Writes the value from the state to a text field. If the field has the focus and the value in the state has not
 * changed, nothing is written. This exception keeps text that is not yet in the state, such as a half-typed number.
 */
class FieldValue extends Directive {
  private value: string | undefined;

  override update({ element }: ElementPart, [value]: [string]): typeof noChange {
    const field = element as HTMLElement & { value: string };
    const isEdited = value === this.value && document.activeElement === field;
    this.value = value;
    if (!isEdited && field.value !== value) field.value = value;
    return noChange;
  }

  render(_value: string): typeof noChange {
    return noChange;
  }
}
const fieldValue = directive(FieldValue);

/** Writes a dropdown's value after its options are rendered, because the toolkit selects the option by value. */
class ChosenValue extends Directive {
  override update({ parentNode }: ChildPart, [value]: [string]): typeof noChange {
    const element = parentNode as HTMLElement & { value: string };
    if (element.value !== value) element.value = value;
    return noChange;
  }

  render(_value: string): typeof noChange {
    return noChange;
  }
}
const chosenValue = directive(ChosenValue);

/**
 * Sets a control's accessible name and restores it when the toolkit overwrites it. When a control without text is added
 * to the document, the toolkit gives it the name “Text field” or “Checkbox”.
 */
class LastingLabel extends Directive {
  private label = '';
  private element: Element | undefined;

  override update({ element }: ElementPart, [label]: [string]): typeof noChange {
    this.label = label;
    setAttribute(element, 'aria-label', label);
    if (this.element === element) return noChange;
    this.element = element;
    const restore = (): void => setAttribute(element, 'aria-label', this.label);
    new MutationObserver(restore).observe(element, { attributeFilter: ['aria-label'] });
    return noChange;
  }

  render(_label: string): typeof noChange {
    return noChange;
  }
}
const lastingLabel = directive(LastingLabel);
