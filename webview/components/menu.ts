// A drop-down menu of a button, for mouse and arrow keys. It closes on Escape, on selection, and when the focus leaves
// it. It is rendered outside the page's root, so that no scroll container clips it. It is rendered once and not updated
// while it is open.
import { html, nothing, render, type TemplateResult } from 'lit';

export interface MenuItem {
  label: string;
  /** Keyboard shortcut of the item. */
  key?: string;
  /** State of a toggle item; undefined for a command. */
  checked?: boolean;
  run(): void;
}

/**
 * Shows the items under `anchor`; null is a separator. The focus returns to `anchor` when the user selects an item or
 * closes the menu with a key.
 */
export function openMenu(anchor: HTMLElement, label: string, items: readonly (MenuItem | null)[]): void {
  const menu = document.createElement('div');
  menu.className = 'menu';
  menu.setAttribute('role', 'menu');
  menu.setAttribute('aria-label', label);
  let closed = false;
  const close = (back = true): void => {
    if (closed) return;
    closed = true;
    menu.remove();
    document.removeEventListener('pointerdown', outside, true);
    if (back) anchor.focus();
  };
  const outside = (event: Event): void => {
    if (!event.composedPath().includes(menu)) close(false);
  };
  const choose = (item: MenuItem): void => {
    close();
    item.run();
  };
  render(
    items.map(item => (item ? entry(item, choose) : html`<div class="menu-line" role="separator"></div>`)),
    menu,
  );
  const buttons = [...menu.querySelectorAll('button')];
  menu.addEventListener('keydown', event => {
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to !== undefined) buttons[(to + buttons.length) % buttons.length].focus();
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  menu.addEventListener('focusout', event => {
    if (event.relatedTarget instanceof Node && !menu.contains(event.relatedTarget)) close(false);
  });
  document.body.append(menu);
  place(menu, anchor);
  document.addEventListener('pointerdown', outside, true);
  buttons[0]?.focus();
}

function entry(item: MenuItem, choose: (item: MenuItem) => void): TemplateResult {
  const { label, key, checked } = item;
  return html`<button
    class="plain menu-item"
    type="button"
    role=${checked === undefined ? 'menuitem' : 'menuitemcheckbox'}
    tabindex="-1"
    aria-checked=${checked === undefined ? nothing : String(checked)}
    @click=${() => choose(item)}
  >
    <span class="menu-check" aria-hidden="true">${checked ? '✓' : ''}</span><span>${label}</span>
    ${key === undefined ? nothing : html`<kbd>${key}</kbd>`}
  </button>`;
}

/** Positions the menu below the anchor, or above it if there is no room below, and keeps it inside the window. */
function place(menu: HTMLElement, anchor: HTMLElement): void {
  const box = anchor.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = menu;
  const below = box.bottom + offsetHeight <= window.innerHeight || box.top < offsetHeight;
  menu.style.left = `${Math.max(4, Math.min(box.right - offsetWidth, window.innerWidth - offsetWidth - 4))}px`;
  menu.style.top = `${below ? box.bottom + 2 : box.top - offsetHeight - 2}px`;
}
