// The help of a page's keyboard shortcuts: a dialog that opens on `?`. Its content comes from the tables that the page
// uses to handle the keys, so that both always agree.
import { html, render, type TemplateResult } from 'lit';
import { keyName, onKeys, type KeyMap } from '../shared/keyboard';
import { button } from './controls';

/** Keys that work in one place, such as a chart with the focus. Keys with the same text are shown in one row. */
export interface KeyGroup {
  readonly title: string;
  /** What each key does, by `KeyboardEvent.key` or by the name of a combination, such as `Ctrl+Enter`. */
  readonly keys: Readonly<Record<string, { readonly does: string }>>;
}

/** Opens the help when `?` is pressed outside text fields. `groups` is called each time the help opens. */
export function offerKeyHelp(groups: () => readonly KeyGroup[]): void {
  const keys: KeyMap = {
    '?': { does: 'Show these keys', run: () => openHelp([...groups(), { title: 'Everywhere', keys }]) },
  };
  onKeys(document, keys);
}

function openHelp(groups: readonly KeyGroup[]): void {
  const dialog = document.createElement('dialog');
  dialog.className = 'key-help';
  dialog.setAttribute('aria-label', 'Keys of this page');
  const close = (): void => dialog.close();
  dialog.addEventListener('close', () => dialog.remove());
  dialog.addEventListener('keydown', event => {
    if (event.key !== 'Escape' && event.key !== '?') return;
    event.preventDefault(); // the page behind the dialog must not handle Escape too
    close();
  });
  dialog.addEventListener('click', event => {
    if (event.target === dialog) close(); // the click was beside the content
  });
  render(
    html`<div class="key-help-content">
      <header
        ><h2>Keys of this page</h2>${button({ label: 'Close', icon: 'close', iconOnly: true, onClick: close })}</header
      >
      <div class="key-groups">${groups.map(groupView)}</div>
    </div>`,
    dialog,
  );
  document.body.append(dialog);
  dialog.showModal();
}

function groupView({ title, keys }: KeyGroup): TemplateResult {
  const rows = new Map<string, string[]>();
  for (const [key, { does }] of Object.entries(keys)) rows.set(does, [...(rows.get(does) ?? []), key]);
  return html`<section>
    <h3>${title}</h3>
    <dl>
      ${[...rows].map(
        ([does, same]) =>
          html`<div><dt>${same.map(key => html`<kbd>${keyName(key)}</kbd>`)}</dt><dd>${does}</dd></div>`,
      )}
    </dl>
  </section>`;
}
