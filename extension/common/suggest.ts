// Finds the known word nearest to an unknown word ("Did you mean …") by Damerau–Levenshtein distance (optimal string
// alignment).

function distance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + cost);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    before = previous;
    previous = row;
  }
  return previous[b.length];
}

/**
 * Returns the candidate nearest to `word`, ignoring case. If several candidates are equally near, returns the first of
 * them. Returns undefined if the distance is greater than 2 and also greater than a third of the word's length.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const lower = word.toLowerCase().slice(0, 200);
  let best: string | undefined;
  let least = Math.max(2, Math.floor(lower.length / 3)) + 1;
  for (const candidate of candidates) {
    const other = candidate.toLowerCase();
    // If one word is a prefix of the other word (test_freq and test_frequency), their distance counts as 1.
    const cut = Math.min(other.length, lower.length) >= 4 && (other.startsWith(lower) || lower.startsWith(other));
    if (!cut && Math.abs(candidate.length - lower.length) >= least) continue;
    const d = cut ? 1 : distance(lower, other);
    if (d < least) [best, least] = [candidate, d];
  }
  return best;
}

/** Returns `did you mean …?` with the candidate nearest to `word`. If no candidate is near, returns `otherwise`. */
export function didYouMean(word: string, candidates: Iterable<string>, otherwise: string): string {
  const near = nearest(word, candidates);
  return near === undefined ? otherwise : `did you mean ${near}?`;
}
