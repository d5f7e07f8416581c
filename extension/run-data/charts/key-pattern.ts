// Patterns of metric keys in plans of charts: `*` stands for one or more characters within a part of a key. Events of a run
// contain patterns, so matching takes time in proportion to the lengths, whatever the pattern is.

/** Returns a function that tells whether a key matches a pattern. */
export function matcher(pattern: string): (key: string) => boolean {
  const parts = pattern.split('/').map(part => part.split('*'));
  return key => {
    const texts = key.split('/');
    return texts.length === parts.length && texts.every((text, i) => isMatch(text, parts[i]));
  };
}

/** Whether a text consists of the pieces, with at least one character between each two of them. */
function isMatch(text: string, pieces: readonly string[]): boolean {
  if (pieces.length === 1) return text === pieces[0];
  const [first, ...middle] = pieces.slice(0, -1);
  const last = pieces[pieces.length - 1];
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length + 1;
  for (const piece of middle) {
    const found = text.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length + 1;
  }
  return at <= text.length - last.length;
}
