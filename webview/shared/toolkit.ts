// The controls of the pages. Only this file uses @vscode/webview-ui-toolkit, so that it can be replaced here. Factories
// return plain elements; before `registerToolkit` (or in tests without it) they are inert tags that still receive
// events.
import {
  provideVSCodeDesignSystem,
  vsCodeButton,
  vsCodeCheckbox,
  vsCodeDropdown,
  vsCodeOption,
  vsCodeTextField,
} from '@vscode/webview-ui-toolkit';
import { h, setAttribute, type Child } from './dom';

/** Defines the toolkit's elements. Called once, by the page's entry. */
export function registerToolkit(): void {
  provideVSCodeDesignSystem().register(
    vsCodeButton(),
    vsCodeCheckbox(),
    vsCodeDropdown(),
    vsCodeOption(),
    vsCodeTextField(),
  );
}

export interface ButtonOptions {
  /** The button's text, or its accessible name if it only has an icon. */
  label: string;
  icon?: Child;
  /** Shows only the icon. */
  iconOnly?: boolean;
  primary?: boolean;
  title?: string;
  /** State of a toggle button. */
  pressed?: boolean;
  onClick(): void;
}

export function button({ label, icon, iconOnly, primary, title, pressed, onClick }: ButtonOptions): HTMLElement {
  const appearance = iconOnly ? 'icon' : primary ? 'primary' : 'secondary';
  const element = h(
    'vscode-button',
    {
      appearance,
      title: title ?? (iconOnly ? label : null),
      'aria-label': iconOnly ? label : null,
      'aria-pressed': pressed === undefined ? null : String(pressed),
    },
    icon,
    iconOnly ? null : label,
  );
  element.addEventListener('click', onClick);
  return element;
}

export interface TextFieldOptions {
  label: string;
  placeholder?: string;
  value?: string;
  class?: string;
  title?: string;
  onInput(value: string): void;
}

/** A text field; read and write its text through the `value` property. */
export function textField(options: TextFieldOptions): HTMLElement & { value: string } {
  const { label, placeholder, value = '', title, onInput } = options;
  const element = h('vscode-text-field', {
    class: options.class,
    'aria-label': label,
    placeholder,
    title,
  }) as HTMLElement & { value: string };
  element.value = value;
  keepLabel(element, label);
  element.addEventListener('input', () => onInput(element.value));
  return element;
}

export interface DropdownOptions<V extends string> {
  label: string;
  choices: readonly (readonly [value: V, text: string])[];
  value: V;
  onChange(value: V): void;
}

export function dropdown<V extends string>({
  label,
  choices,
  value,
  onChange,
}: DropdownOptions<V>): HTMLElement & { value: string } {
  const options = choices.map(([choice, text]) =>
    h('vscode-option', { value: choice, selected: choice === value }, text),
  );
  const element = h('vscode-dropdown', { 'aria-label': label }, ...options) as HTMLElement & { value: string };
  element.addEventListener('change', () => {
    const chosen = choices.find(([choice]) => choice === element.value);
    if (chosen) onChange(chosen[0]);
  });
  return element;
}

/** A checkbox; read and write its state through the `checked` property. */
export function checkbox(label: string, onChange: (checked: boolean) => void): HTMLElement & { checked: boolean } {
  const element = h('vscode-checkbox', { 'aria-label': label }) as HTMLElement & { checked: boolean };
  keepLabel(element, label);
  element.addEventListener('change', () => onChange(element.checked));
  return element;
}

/**
 * Restores the label: the toolkit names controls without a text “Text field” or “Checkbox” once they are on the page.
 */
function keepLabel(element: HTMLElement, label: string): void {
  const mend = () => setAttribute(element, 'aria-label', label);
  new MutationObserver(mend).observe(element, { attributeFilter: ['aria-label'] });
}
