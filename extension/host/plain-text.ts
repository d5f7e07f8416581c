// Names, errors and what a model wrote, as the editor's own surfaces show them: as text. Notifications and the prompts of its inputs read
// `[words](command:…)` as a link that runs a command; status bar, lists and lenses read `$(name)` as an icon. A joiner that nobody sees
// between the two characters keeps them from being read so. No `vscode` here.

/** `text`, which looks the same and is read as nothing but text. What carries icons of our own is made plain before they are added. */
export const plain = (text: string): string => text.replace(/[\]$](?=\()/g, '$&\u2060');

/** `text` for MarkdownString.appendText, which escapes all that is Markdown but bare addresses: those it leaves to be read as links. */
export const unlinked = (text: string): string => text.replace(/:(?=\/\/)|\bwww(?=\.)|@/gi, '$&\u2060');
