// Keyboard shortcuts of a page. Keys pressed in a text field and keys pressed with a modifier are ignored, so that the
// text field and the editor can handle them.

export type KeyMap = Readonly<Record<string, () => void>>;

/**
 * Calls the function assigned to a key (`KeyboardEvent.key`) when the key is pressed within `target`. Escape also works
 * in text fields.
 */
export function onKeys(target: Document | HTMLElement, keys: KeyMap): void {
  target.addEventListener('keydown', event => {
    if (!(event instanceof KeyboardEvent) || event.defaultPrevented) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key !== 'Escape' && isTyping(event)) return;
    const run = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
    if (!run) return;
    event.preventDefault();
    run();
  });
}

/** Whether the event comes from a text input; also looks into shadow roots. */
export function isTyping(event: Event): boolean {
  return event.composedPath().some(target => {
    if (!(target instanceof HTMLElement)) return false;
    return ['INPUT', 'TEXTAREA', 'SELECT', 'VSCODE-TEXT-FIELD', 'VSCODE-DROPDOWN'].includes(target.tagName);
  });
}
