// Makes untrusted text safe to print on one terminal line. A name from a run folder must not be able to move the cursor
// or to look like a second row.

/** Returns the text with control characters, line breaks and bidirectional marks replaced by U+FFFD. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, '\ufffd');
