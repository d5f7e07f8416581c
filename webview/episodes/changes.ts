// Which lines of a state are new against the state of the turn before: the lines that a longest common subsequence leaves out.

export interface Line {
  text: string;
  changed: boolean;
}

/** States longer than this are compared line by line at the same place, to bound the work. */
const longest = 400;

/** The lines of `state`, those that `previous` has not at this place in the order marked. Nothing is marked without a previous state. */
export function markedLines(state: string, previous: string | null): Line[] {
  const lines = state.split('\n');
  if (previous === null) return lines.map(text => ({ text, changed: false }));
  const before = previous.split('\n');
  if (lines.length > longest || before.length > longest)
    return lines.map((text, i) => ({ text, changed: text !== before[i] }));
  const common = commonLengths(before, lines);
  const marked: Line[] = [];
  let [i, j] = [0, 0];
  while (j < lines.length) {
    if (i < before.length && before[i] === lines[j]) {
      marked.push({ text: lines[j++], changed: false });
      i++;
    } else if (i < before.length && common[i + 1][j] >= common[i][j + 1]) i++;
    else marked.push({ text: lines[j++], changed: true });
  }
  return marked;
}

/** Length of the longest common subsequence of a[i…] and b[j…]. */
function commonLengths(a: string[], b: string[]): Uint16Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}
