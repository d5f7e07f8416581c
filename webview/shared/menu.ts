// A drop-down menu of a button: usable by mouse and arrow keys; closes on Escape, on selection, and when the focus
// leaves it.
import { h } from './dom';

export interface MenuItem {
  label: string;
  /** Keyboard shortcut of the item. */
  key?: string;
  /** State of a setting that is on or off. */
  checked?: boolean;
  run(): void;
}

/** Shows the items under `anchor`, which gets the focus back at the end. Null is a separator. */
export function openMenu(anchor: HTMLElement, label: string, items: readonly (MenuItem | null)[]): void {
  const entries = items.map(item => {
    if (!item) return h('div', { class: 'menu-line', role: 'separator' });
    const role = item.checked === undefined ? 'menuitem' : 'menuitemcheckbox';
    const entry = h(
      'button',
      {
        class: 'plain menu-item',
        type: 'button',
        role,
        tabindex: -1,
        'aria-checked': item.checked === undefined ? null : String(item.checked),
      },
      h('span', { class: 'menu-check', 'aria-hidden': 'true' }, item.checked ? '✓' : ''),
      h('span', {}, item.label),
      item.key ? h('kbd', {}, item.key) : null,
    );
    entry.addEventListener('click', () => {
      close();
      item.run();
    });
    return entry;
  });
  const menu = h('div', { class: 'menu', role: 'menu', 'aria-label': label }, ...entries);
  const buttons: HTMLElement[] = entries.filter(entry => entry.tagName === 'BUTTON');
  let closed = false;
  const close = (back = true) => {
    if (closed) return;
    closed = true;
    menu.remove();
    document.removeEventListener('pointerdown', outside, true);
    if (back) anchor.focus();
  };
  const outside = (event: Event) => {
    if (!event.composedPath().includes(menu)) close(false);
  };
  menu.addEventListener('keydown', event => {
    const at = buttons.indexOf(document.activeElement as HTMLElement);
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
  const box = anchor.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = menu;
  const below = box.bottom + offsetHeight <= window.innerHeight || box.top < offsetHeight;
  menu.style.left = `${Math.max(4, Math.min(box.right - offsetWidth, window.innerWidth - offsetWidth - 4))}px`;
  menu.style.top = `${below ? box.bottom + 2 : box.top - offsetHeight - 2}px`;
  document.addEventListener('pointerdown', outside, true);
  buttons[0]?.focus();
}
