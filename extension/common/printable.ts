// Makes untrusted text safe to print on one terminal line: a name from a run folder must neither move the cursor nor
// forge a row.

/** Returns the text with control characters, line breaks and bidirectional marks replaced by U+FFFD. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, '\ufffd');
