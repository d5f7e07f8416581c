// Keys of a page. A key pressed while a text is typed belongs to the text; one with a modifier belongs to the editor.

export type KeyMap = Readonly<Record<string, () => void>>;

/** Calls the function named by the key (`KeyboardEvent.key`) wherever on the page it is pressed. Escape works in text fields too. */
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

/** Whether the event comes from a place where letters are typed; looks into shadow roots. */
export function isTyping(event: Event): boolean {
  return event.composedPath().some(target => {
    if (!(target instanceof HTMLElement)) return false;
    return ['INPUT', 'TEXTAREA', 'SELECT', 'VSCODE-TEXT-FIELD', 'VSCODE-DROPDOWN'].includes(target.tagName);
  });
}
