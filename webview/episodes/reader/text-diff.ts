// Text differences: lines or words outside the longest common subsequence of two texts are marked.

export interface Part {
  text: string;
  changed: boolean;
}

/**
 * Maximum number of lines or words for the exact comparison, whose cost is quadratic. Longer texts are compared
 * position by position.
 */
const longest = 400;

/**
 * Splits `state` into lines. Lines outside the longest common subsequence with `previous` are marked; if there is no
 * previous state, no line is marked.
 */
export const markedLines = (state: string, previous: string | null): Part[] =>
  marked(state.split('\n'), previous?.split('\n') ?? null);

/**
 * Splits a text into words with their trailing blanks. Words outside the longest common subsequence with `reference`
 * are marked.
 */
export const markChanges = (text: string, reference: string | null): Part[] =>
  marked(wordsOf(text), reference === null ? null : wordsOf(reference), part => part.trimEnd());

const wordsOf = (text: string): string[] => text.match(/\S+\s*|^\s+/g) ?? [];

function marked(parts: string[], before: string[] | null, keyOf: (part: string) => string = part => part): Part[] {
  if (before === null) return parts.map(text => ({ text, changed: false }));
  const [from, to] = [before.map(keyOf), parts.map(keyOf)];
  if (to.length > longest || from.length > longest)
    return parts.map((text, i) => ({ text, changed: to[i] !== from[i] }));
  const common = commonLengths(from, to);
  const found: Part[] = [];
  let [i, j] = [0, 0];
  while (j < to.length) {
    if (i < from.length && from[i] === to[j]) {
      found.push({ text: parts[j++], changed: false });
      i++;
    } else if (i < from.length && common[i + 1][j] >= common[i][j + 1]) i++;
    else found.push({ text: parts[j++], changed: true });
  }
  return found;
}

/** Returns a table whose element [i][j] is the length of the longest common subsequence of a[i…] and b[j…]. */
function commonLengths(a: string[], b: string[]): Uint16Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}
