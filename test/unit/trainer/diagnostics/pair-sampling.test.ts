// The pairs drawn for a diagnosis: columns, duplicates, episodes without a thought.
import { describe, expect, it } from 'vitest';
import { firstTurnPairs, trajectoryPairs, turnPairs } from '../../../../extension/trainer/diagnostics/pair-sampling';
import type { EpisodePairs, TurnPair } from '../../../../extension/trainer/diagnostics/pair-sampling';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';

const pair = (group: number, episode: number, turn: number): TurnPair => ({
  prompt: [group, ...Array.from({ length: turn - 1 }, () => episode)],
  reasoning: [100 * episode + turn],
  turn,
});
/** Episodes with `turns[e]` thoughts in episode e, two episodes per group. */
const played = (turns: readonly number[]): EpisodePairs[] =>
  turns.map((count, e) => {
    const group = Math.floor(e / 2);
    const all = Array.from({ length: count }, (_, t) => pair(group, e, t + 1));
    return { episode: `e${e}`, group, first: all[0] ?? null, turns: all };
  });

describe('first turns', () => {
  it('have one column per group, and exclude episodes without a first thought', () => {
    const { columns, samples } = firstTurnPairs(played([2, 1, 0, 3, 1, 1]), null, new RandomStream(1));
    expect(columns).toEqual([[0], [1], [2]]);
    expect(samples.map(({ episode, column, turn }) => [episode, column, turn])).toEqual([
      ['e0', 0, 1],
      ['e1', 0, 1],
      ['e3', 1, 1],
      ['e4', 2, 1],
      ['e5', 2, 1],
    ]);
  });

  it('are drawn without replacement, with equal probability', () => {
    const random = new RandomStream(2);
    const counts = new Map<string, number>();
    for (let i = 0; i < 1000; i++) {
      const { columns, samples } = firstTurnPairs(played([1, 1, 1, 1, 1, 1]), 3, random);
      expect(new Set(samples.map(({ episode }) => episode)).size).toBe(3);
      expect(columns.length).toBe(new Set(samples.map(({ group }) => group)).size);
      for (const { episode, group, column } of samples) {
        expect(columns[column]).toEqual([group]);
        counts.set(episode, (counts.get(episode) ?? 0) + 1);
      }
    }
    expect(counts.size).toBe(6);
    for (const count of counts.values()) expect(Math.abs(count - 500)).toBeLessThan(100);
  });

  it('are refused if the episodes of a group start with different prompts', () => {
    const episodes = played([1, 1]);
    episodes[1].first!.prompt = [7];
    expect(() => firstTurnPairs(episodes, null, new RandomStream(1))).toThrow(
      'collapse diagnosis: the first prompts of group 0 differ between its episodes (e1)',
    );
  });
});

describe('trajectories', () => {
  it('have equal weight whatever their length, and every draw has its own column', () => {
    const random = new RandomStream(3);
    const counts = new Map<string, number>();
    let drawn = 0;
    for (let i = 0; i < 800; i++) {
      const { columns, samples } = trajectoryPairs(played([1, 9, 0]), 8, random);
      expect(samples.map(({ column }) => column)).toEqual(columns.map((_, j) => j));
      for (const { episode } of samples) counts.set(episode, (counts.get(episode) ?? 0) + 1);
      drawn += samples.length;
    }
    expect(counts.has('e2')).toBe(false);
    expect(drawn / 6400).toBeCloseTo(2 / 3, 1);
    expect(counts.get('e0')! / drawn).toBeCloseTo(0.5, 1);
  });

  it('are limited to the number of turns', () => {
    expect(trajectoryPairs(played([2, 1]), 64, new RandomStream(4)).samples).toHaveLength(3);
    expect(trajectoryPairs(played([2, 1]), null, new RandomStream(4)).samples).toHaveLength(3);
    expect(trajectoryPairs(played([0, 0]), null, new RandomStream(4)).samples).toEqual([]);
  });
});

it('turns are drawn without replacement, with equal probability', () => {
  const { columns, samples } = turnPairs(played([1, 3]), 3, new RandomStream(5));
  expect(new Set(samples.map(({ reasoning }) => reasoning[0])).size).toBe(3);
  expect(columns).toHaveLength(3);
  expect(turnPairs(played([1, 3]), null, new RandomStream(5)).samples).toHaveLength(4);
});
