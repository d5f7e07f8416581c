// Keyboard shortcuts of a page. Keys pressed in a text field, in a dialog, or with a modifier are ignored, so that the
// field, the dialog and the editor can handle them.

/** A keyboard shortcut: what it does, as the help of the page says, and the function that does it. */
export interface KeyAction {
  readonly does: string;
  run(): void;
}

export type KeyMap = Readonly<Record<string, KeyAction>>;

/**
 * Performs the action assigned to a key (`KeyboardEvent.key`) when the key is pressed within `target`. Escape also works
 * in text fields.
 */
export function onKeys(target: Document | HTMLElement, keys: KeyMap): void {
  target.addEventListener('keydown', event => {
    if (!(event instanceof KeyboardEvent) || event.defaultPrevented) return;
    if (event.key !== 'Escape' && isTyping(event)) return;
    const action = entryOfKey(keys, event);
    if (!action) return;
    event.preventDefault();
    action.run();
  });
}

/** Returns the entry of a pressed key in a table; undefined without an entry, and for a key with a modifier except Shift. */
export function entryOfKey<T>(table: Readonly<Record<string, T>>, event: KeyboardEvent): T | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  return Object.hasOwn(table, event.key) ? table[event.key] : undefined;
}

/** Whether the event comes from a text input or from a dialog; also looks into shadow roots. */
export function isTyping(event: Event): boolean {
  return event.composedPath().some(target => {
    if (!(target instanceof HTMLElement)) return false;
    return ['INPUT', 'TEXTAREA', 'SELECT', 'DIALOG', 'VSCODE-TEXT-FIELD', 'VSCODE-DROPDOWN'].includes(target.tagName);
  });
}

const names: Readonly<Record<string, string>> = {
  ...{ ArrowUp: '↑', ArrowLeft: '←', ArrowDown: '↓', ArrowRight: '→' },
  ...{ ' ': 'Space', Escape: 'Esc', PageUp: 'Page Up', PageDown: 'Page Down' },
};

/** Returns the name of a key (`KeyboardEvent.key`) as pages show it. */
export const keyName = (key: string): string => (Object.hasOwn(names, key) ? names[key] : key);
