// A modal dialog with text fields and a button. The dialog stays open and shows the problems of the fields until its
// values are accepted or the user closes it. It is rendered outside the page's root.
import { html, nothing, render, type TemplateResult } from 'lit';
import { button } from './controls';

export interface FormField<Name extends string> {
  readonly name: Name;
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly help?: string;
  /** Texts that the field offers while the user types. */
  readonly suggestions?: readonly string[];
}

export interface FormOptions<Name extends string> {
  readonly title: string;
  /** Text of the button that accepts the values. */
  readonly action: string;
  readonly help?: TemplateResult | string;
  readonly fields: readonly FormField<Name>[];
  /** Handles the values; returns the problems by field, or null if the values are valid. */
  accept(values: Record<Name, string>): Partial<Record<Name, string>> | null;
}

/** Opens the dialog. The focus returns to where it was when the dialog closes. */
export function openForm<Name extends string>(options: FormOptions<Name>): void {
  const { title, action, help, fields, accept } = options;
  const dialog = document.createElement('dialog');
  dialog.className = 'form-dialog';
  dialog.setAttribute('aria-label', title);
  const close = (): void => dialog.close();
  dialog.addEventListener('close', () => dialog.remove());
  const input = (name: Name): HTMLInputElement => dialog.querySelector<HTMLInputElement>(`[name="${name}"]`)!;
  const submit = (event: Event): void => {
    event.preventDefault();
    const values = Object.fromEntries(fields.map(({ name }) => [name, input(name).value])) as Record<Name, string>;
    const problems = accept(values);
    if (!problems) return close();
    draw(problems);
    const first = fields.find(({ name }) => problems[name] !== undefined);
    if (first) input(first.name).focus();
  };
  const draw = (problems: Partial<Record<Name, string>>): void => {
    render(
      html`<form class="form-dialog-content" @submit=${submit}>
        <header><h2>${title}</h2>${button({ label: 'Close', icon: 'close', iconOnly: true, onClick: close })}</header>
        ${help === undefined ? nothing : html`<p class="muted">${help}</p>`}
        ${fields.map(field => fieldView(field, problems[field.name]))}
        <div class="form-dialog-buttons"
          >${button({ label: action, primary: true, onClick: submit })}${button({ label: 'Cancel', onClick: close })}</div
        >
      </form>`,
      dialog,
    );
  };
  draw({});
  for (const { name, value } of fields) input(name).value = value;
  dialog.addEventListener('keydown', event => {
    event.stopPropagation(); // the keys of the page do not work while the dialog is open
    if (event.key === 'Enter' && event.target instanceof HTMLInputElement) submit(event);
  });
  document.body.append(dialog);
  dialog.showModal();
  input(fields[0].name).select();
}

function fieldView<Name extends string>(
  { name, label, placeholder, help, suggestions = [] }: FormField<Name>,
  problem: string | undefined,
): TemplateResult {
  const list = `suggestions-${name}`;
  return html`<label class="form-dialog-field"
    ><span>${label}</span
    ><input
      name=${name}
      type="text"
      autocomplete="off"
      spellcheck="false"
      placeholder=${placeholder ?? nothing}
      list=${suggestions.length > 0 ? list : nothing}
      aria-invalid=${problem === undefined ? nothing : 'true'}
      aria-describedby=${`about-${name}`}
    />${suggestions.length > 0 ? html`<datalist id=${list}>${suggestions.map(each => html`<option value=${each}></option>`)}</datalist>` : nothing}<span
      id=${`about-${name}`}
      class=${problem === undefined ? 'muted' : 'problem'}
      role=${problem === undefined ? nothing : 'alert'}
      >${problem ?? help ?? ''}</span
    ></label
  >`;
}
