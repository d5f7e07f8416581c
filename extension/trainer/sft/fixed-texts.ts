// Finds the texts that are the same in the prompts of an environment: instructions, labels, demands. Each can be one
// token of a vocabulary, so that the prompt of a small model consists of little more than what varies. Like BPE, the
// search joins neighbouring pieces; it joins two pieces if one of them hardly ever occurs without the other.

export interface FixedTextOptions {
  /** Regular expression (source) whose matches, and the texts between them, are the pieces of a prompt. */
  isolate: string;
  /** Regular expression (source) of pieces that no fixed text contains. */
  variable: string;
}

/** Share of the occurrences of a piece with the same neighbour, from which on the two are joined. */
const jointShare = 0.98;
/** Minimum number of occurrences of a fixed text per episode, and its minimum length in characters. */
const leastShare = 0.5;
const leastLength = 4;

/** Returns the fixed texts of several environments, longest first. An environment lists the messages of each episode. */
export function fixedTexts(environments: readonly (readonly string[][])[], options: FixedTextOptions): string[] {
  const isolate = new RegExp(`(${options.isolate})`, 'gu');
  const variable = new RegExp(options.variable, 'u');
  const found = new Set<string>();
  for (const episodes of environments) {
    const pieces = episodes.flat().map(text => text.split(isolate).filter(piece => piece !== ''));
    const least = leastShare * episodes.length;
    let joined = jointPairs(pieces, least, variable);
    while (joined.size > 0) {
      for (const list of pieces) joinAll(list, joined);
      joined = jointPairs(pieces, least, variable);
    }
    for (const [text, count] of countsOf(pieces.flat()))
      if (text.length >= leastLength && count >= least && !variable.test(text) && !/^,? ?\d+$/.test(text))
        found.add(text);
  }
  return [...found].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
}

function countsOf(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

const pairKey = (left: string, right: string): string => `${left}\0${right}`;

/** Returns the pairs of neighbouring pieces to join. */
function jointPairs(pieces: readonly string[][], least: number, variable: RegExp): Set<string> {
  const single = countsOf(pieces.flat());
  const pairs = new Map<string, { left: string; right: string; count: number }>();
  for (const list of pieces)
    for (let i = 0; i + 1 < list.length; i++) {
      const [left, right] = [list[i], list[i + 1]];
      const key = pairKey(left, right);
      const entry = pairs.get(key);
      if (entry) entry.count++;
      else pairs.set(key, { left, right, count: 1 });
    }
  const isJoint = ({ left, right, count }: { left: string; right: string; count: number }): boolean =>
    count >= least &&
    !variable.test(left) &&
    !variable.test(right) &&
    count >= jointShare * Math.min(single.get(left)!, single.get(right)!);
  return new Set([...pairs].filter(([, pair]) => isJoint(pair)).map(([key]) => key));
}

/** Joins each pair of neighbouring pieces that is in `joined`, from left to right, in place. */
function joinAll(list: string[], joined: ReadonlySet<string>): void {
  for (let i = 0; i + 1 < list.length;) {
    if (joined.has(pairKey(list[i], list[i + 1]))) list.splice(i, 2, list[i] + list[i + 1]);
    else i++;
  }
}
