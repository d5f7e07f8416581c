// The picked episodes of a run: extremes with their ties, and the prompt that changed most.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { indexColumns, indexLine, type EpisodeIndexLine } from '../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../extension/run-data/episode-table';
import { pickEpisodes } from '../../../extension/run-data/picked-episodes';

interface Played {
  mode?: 'train' | 'val';
  step: number;
  seed?: number;
  group?: number;
  member?: number;
  score: number;
  turns?: number;
}

function lineOf({ mode = 'train', step, ...values }: Played): EpisodeIndexLine {
  const line = indexLine(mode, step, 0);
  line.tags.push('lake');
  const known: Partial<Record<string, number>> = { seed: 1, group: 0, member: 0, turns: 1, ...values };
  for (const name of indexColumns) line.columns[name].push(known[name] ?? 0);
  return line;
}

function picksOf(played: readonly Played[]): Record<string, string> {
  const table = new EpisodeTable();
  for (const each of played) table.addLine(lineOf(each));
  return Object.fromEntries(pickEpisodes(table).map(({ kind, episode }) => [kind, episode.id]));
}

describe('picked episodes', () => {
  it('are none for a run without episodes, and only the best if all scores are equal', () => {
    expect(picksOf([])).toEqual({});
    expect(picksOf([{ step: 1, score: 0 }])).toEqual({ best: 'train-000001-g000-m00' });
  });

  it('are the newest of equal scores, and in a step the shortest', () => {
    const picked = picksOf([
      { step: 1, score: 1 },
      { step: 2, score: 1, turns: 5 },
      { step: 2, score: 1, turns: 2, member: 1 },
      { step: 2, score: 0, turns: 2, member: 2 },
      { step: 1, score: 0, member: 3 },
    ]);
    expect(picked).toEqual({ best: 'train-000002-g000-m01', worst: 'train-000002-g000-m02' });
  });

  it('contain the prompt whose mean score changed most between its first and its last validation', () => {
    const table = new EpisodeTable();
    const played: Played[] = [
      ...[0, 1].map(member => ({ mode: 'val' as const, step: 0, seed: 7, member, score: 0 })),
      { mode: 'val', step: 0, seed: 8, group: 1, score: 1 },
      { mode: 'val', step: 10, seed: 7, score: 1 },
      { mode: 'val', step: 10, seed: 8, group: 1, score: 0.75 },
      ...[1, 0].map(member => ({ mode: 'val' as const, step: 20, seed: 7, member, score: member })),
      { mode: 'val', step: 20, seed: 8, group: 1, score: 0.75 },
    ];
    for (const each of played) table.addLine(lineOf(each));
    const changed = pickEpisodes(table).find(({ kind }) => kind === 'changed')!;
    expect(changed.episode).toMatchObject({ id: 'val-000020-g000-m00', seed: 7 });
    expect(changed.change).toEqual({ firstStep: 0, from: 0, to: 0.5 });
  });

  it('contain no changed prompt of training episodes, or of one validation', () => {
    const train = [1, 2].map(step => ({ step, seed: 3, score: step }));
    expect(picksOf([...train, { mode: 'val', step: 2, score: 5 }])).not.toHaveProperty('changed');
  });
});

test('no episode has a higher or lower score than the picked ones', () => {
  const played = fc.array(
    fc.record({ step: fc.nat(9), member: fc.nat(9), score: fc.integer({ min: -3, max: 3 }), turns: fc.nat(5) }),
    { minLength: 1, maxLength: 40 },
  );
  fc.assert(
    fc.property(played, all => {
      const table = new EpisodeTable();
      for (const each of all) table.addLine(lineOf(each));
      const [best, worst = best] = pickEpisodes(table).map(({ episode }) => episode);
      for (const { score } of all) {
        expect(score).toBeLessThanOrEqual(best.score);
        expect(score).toBeGreaterThanOrEqual(worst.score);
      }
    }),
  );
});
