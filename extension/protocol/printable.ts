// Texts of strangers as one line of a terminal: a name may come with a run folder, and must neither move the cursor nor forge a row.

/** The text with each control character, line break and mark of direction replaced by U+FFFD. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, '\ufffd');
