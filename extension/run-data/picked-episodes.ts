// The episodes of a run that are worth reading first: the best, the worst, and the one whose prompt changed most over
// training. Pure functions on the table of episodes.
import type { EpisodeRow, EpisodeTable } from './episode-table';

export interface PickedEpisode {
  kind: 'best' | 'worst' | 'changed';
  /** For `changed`, an episode of the last validation of the prompt. */
  episode: Pick<EpisodeRow, 'id' | 'step' | 'mode' | 'tag' | 'score' | 'success' | 'turns' | 'seed'>;
  /** For `changed`: mean score of the prompt in its first validation and in its last; null otherwise. */
  change: { firstStep: number; from: number; to: number } | null;
}

/** Scores of one prompt in one validation. */
interface Validated {
  step: number;
  sum: number;
  count: number;
  /** The row with the least group and member. */
  row: number;
}

/**
 * Returns the episodes with the highest and with the lowest score; of equal scores, the newest, and within a step the
 * one with the fewest turns. If validations repeat prompts (tag and seed), also returns an episode of the prompt whose
 * mean score differs most between its first and its last validation; of equal differences, a rise. A run whose scores
 * are all equal has no worst episode, and a run without a change no changed one.
 */
export function pickEpisodes(table: EpisodeTable): PickedEpisode[] {
  if (table.rows === 0) return [];
  const best = extreme(table, 1);
  const worst = extreme(table, -1);
  const score = table.column('score');
  const picked: PickedEpisode[] = [{ kind: 'best', episode: about(table, best), change: null }];
  if (score[worst] < score[best]) picked.push({ kind: 'worst', episode: about(table, worst), change: null });
  const changed = mostChanged(table);
  if (changed) picked.push(changed);
  return picked;
}

/** Returns the row with the highest score if `sign` is 1, with the lowest if it is −1. */
function extreme(table: EpisodeTable, sign: 1 | -1): number {
  const [score, step, turns] = [table.column('score'), table.column('step'), table.column('turns')];
  let found = 0;
  for (let row = 1; row < table.rows; row++) {
    const difference = sign * (score[row] - score[found]) || step[row] - step[found] || turns[found] - turns[row];
    if (difference > 0) found = row;
  }
  return found;
}

function mostChanged(table: EpisodeTable): PickedEpisode | null {
  const [mode, seed, tag, step, score] = (['mode', 'seed', 'tag', 'step', 'score'] as const).map(name =>
    table.column(name),
  );
  const [group, member] = [table.column('group'), table.column('member')];
  const prompts = new Map<string, { first: Validated; last: Validated }>();
  for (let row = 0; row < table.rows; row++) {
    if (mode[row] !== 1) continue;
    const key = `${tag[row]} ${seed[row]}`;
    const fresh = (): Validated => ({ step: step[row], sum: 0, count: 0, row });
    let prompt = prompts.get(key);
    if (!prompt) prompts.set(key, (prompt = { first: fresh(), last: fresh() }));
    if (step[row] < prompt.first.step) prompt.first = fresh();
    if (step[row] > prompt.last.step) prompt.last = fresh();
    for (const end of [prompt.first, prompt.last]) {
      if (end.step !== step[row]) continue;
      end.sum += score[row];
      end.count++;
      const isEarlier = group[row] - group[end.row] || member[row] - member[end.row];
      if (isEarlier < 0) end.row = row;
    }
  }
  let found: { first: Validated; last: Validated; change: number } | undefined;
  for (const { first, last } of prompts.values()) {
    const change = last.sum / last.count - first.sum / first.count;
    if (last.step === first.step || !(Math.abs(change) > 1e-9)) continue;
    const before = found?.change ?? 0;
    if (Math.abs(change) > Math.abs(before) || (change > 0 && change === -before)) found = { first, last, change };
  }
  if (!found) return null;
  const { first, last } = found;
  return {
    kind: 'changed',
    episode: about(table, last.row),
    change: { firstStep: first.step, from: first.sum / first.count, to: last.sum / last.count },
  };
}

function about(table: EpisodeTable, row: number): PickedEpisode['episode'] {
  const { id, step, mode, tag, score, success, turns, seed } = table.row(row);
  return { id, step, mode, tag, score, success, turns, seed };
}
