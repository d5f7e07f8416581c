// Makes untrusted text (names, errors, model output) safe for VS Code's own UI. Notifications and input prompts
// interpret `[words](command:…)` as a link that runs a command; status bar, lists and lenses interpret `$(name)` as an
// icon. An invisible word joiner between `]` and `(`, or between `$` and `(`, prevents these interpretations. Must not
// import `vscode`.

/**
 * Returns a text that looks like `text` but is not interpreted as links or icons. Callers add the extension's own icons
 * after this call.
 */
export const plain = (text: string): string => text.replace(/[\]$](?=\()/g, '$&\u2060');

/** Prepares `text` for MarkdownString.appendText, which escapes Markdown but still turns bare URLs into links. */
export const unlinked = (text: string): string => text.replace(/:(?=\/\/)|\bwww(?=\.)|@/gi, '$&\u2060');
