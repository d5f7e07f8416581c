// Makes untrusted text (names, errors, model output) safe for VS Code's own UI. Notifications and input prompts
// interpret `[words](command:…)` as a link that runs a command; status bar, lists and lenses interpret `$(name)` as an
// icon. An invisible word joiner between the two characters prevents both. Must not import `vscode`.

/** Returns `text` with unchanged appearance, free of links and icons. Icons of our own are added after this call. */
export const plain = (text: string): string => text.replace(/[\]$](?=\()/g, '$&\u2060');

/** Prepares `text` for MarkdownString.appendText, which escapes Markdown but leaves bare URLs to be linked. */
export const unlinked = (text: string): string => text.replace(/:(?=\/\/)|\bwww(?=\.)|@/gi, '$&\u2060');
