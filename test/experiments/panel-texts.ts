// Measures the thoughts of a training step from the texts of its episodes: the share that names the player's true
// position on the lake, and the similarity of two thoughts under the same prompt. These measures define the true
// regimes and use no log-probs.

/** The fields of an episode used here (extension/run-data/episode.ts). */
export interface PanelEpisode {
  group_id: number;
  turns: readonly { turn: number; state: string; thought: string | null }[];
}

/**
 * Share of thoughts whose first coordinates equal the player's position in the thought's prompt; NaN without thoughts.
 */
export function groundedShare(episodes: readonly PanelEpisode[]): number {
  const turns = episodes.flatMap(({ turns }) => turns);
  const right = turns.filter(({ state, thought }) => {
    const player = /Player(?: in hole| on goal)?: \((\d), (\d)\)/.exec(state);
    const named = /\((\d)[, ]+(\d)\)/.exec(thought ?? '');
    return player !== null && named !== null && player[1] === named[1] && player[2] === named[2];
  });
  return right.length / turns.length;
}

/** Mean similarity of the first thoughts of two episodes of a group, from 0 to 1; NaN without such pairs. */
export function promptSimilarity(episodes: readonly PanelEpisode[]): number {
  const groups = new Map<number, string[][]>();
  for (const { group_id, turns } of episodes)
    groups.set(group_id, [...(groups.get(group_id) ?? []), wordsOf(turns[0]?.thought ?? '')]);
  const similarities = [...groups.values()].flatMap(thoughts =>
    thoughts.flatMap((a, i) => thoughts.slice(0, i).map(b => similarity(a, b))),
  );
  return similarities.reduce((sum, x) => sum + x, 0) / similarities.length;
}

const wordsOf = (text: string): string[] => text.match(/\w+|[^\w\s]/g) ?? [];

/** 1 minus the Levenshtein distance over words divided by the length of the longer text. */
export function similarity(a: readonly string[], b: readonly string[]): number {
  if (a.length + b.length === 0) return 1;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, word] of a.entries()) {
    const next = [i + 1];
    for (const [j, other] of b.entries())
      next.push(Math.min(row[j + 1] + 1, next[j] + 1, row[j] + Number(word !== other)));
    row = next;
  }
  return 1 - row[b.length] / Math.max(a.length, b.length);
}
