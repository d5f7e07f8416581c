// Meanings of metric keys, parsed from the tables of docs/METRICS.md. The documentation and the pages thus have the
// same source. A key may contain placeholders, such as `<k>` in `pass@<k>`. A placeholder matches one or more
// characters other than a slash. Invariant: an exact key takes precedence over a pattern, and an earlier pattern takes
// precedence over a later pattern.

/**
 * Parses `| key | meaning |` rows of Markdown tables. The first cell names one or more keys in backticks; the second
 * cell contains their meaning in one sentence. Rows whose first cell has no backticks (headings, rules) are skipped.
 * @returns sentences by key or pattern, in document order
 */
export function parseMetricMeanings(markdown: string): Record<string, string> {
  const meanings: Record<string, string> = {};
  for (const line of markdown.split(/\r?\n/)) {
    const row = /^\s*\|(.+?)\|(.+)\|\s*$/.exec(line);
    if (!row) continue;
    const meaning = row[2].replaceAll('`', '').trim();
    for (const [, key] of row[1].matchAll(/`([^`]+)`/g)) meanings[key.trim()] ??= meaning;
  }
  return meanings;
}

const patterns = new Map<string, RegExp | null>();

/** Returns the regular expression for a key with placeholders; null for a key without placeholders. */
function patternOf(key: string): RegExp | null {
  let pattern = patterns.get(key);
  if (pattern === undefined) {
    const source = key.split(/<[a-z_]+>/).map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    pattern = source.length > 1 ? new RegExp(`^${source.join('[^/]+')}$`) : null;
    patterns.set(key, pattern);
  }
  return pattern;
}

/** Returns the sentence for `key` from `meanings` (keys or patterns), or undefined. */
export function meaningOf(meanings: Readonly<Record<string, string>>, key: string): string | undefined {
  if (Object.hasOwn(meanings, key)) return meanings[key];
  return Object.entries(meanings).find(([pattern]) => patternOf(pattern)?.test(key))?.[1];
}
