// Curriculum: when a tag moves between the difficulty pools, and how the groups of a step are divided among the tags.
import { describe, expect, it } from 'vitest';
import {
  afterEpisodes,
  mixedGroups,
  nothingPlayed,
  type CurriculumOptions,
  type CurriculumState,
} from '../../../extension/algorithms/curriculum';

const options: CurriculumOptions = {
  ...{ easy_above: 0.8, hard_below: 0.2, hysteresis: 0.1, decay: 0 },
  ...{ easy_weight: 0.25, hard_weight: 0.5 },
};
/** Ten episodes of a tag, `succeeded` of them successful. */
const ten = (tag: string, succeeded: number) => Array.from({ length: 10 }, (_, i) => ({ tag, success: i < succeeded }));

describe('a tag', () => {
  it.each([
    [
      'becomes easy at the limit, and normal again only below the hysteresis',
      [5, 8, 7, 6],
      ['normal', 'easy', 'easy', 'normal'],
    ],
    [
      'becomes hard at the limit, and normal again only above the hysteresis',
      [5, 2, 3, 4],
      ['normal', 'hard', 'hard', 'normal'],
    ],
    ['may move from hard to easy in one step', [0, 10, 0], ['hard', 'easy', 'hard']],
  ])('%s', (_, successes, pools) => {
    let state = nothingPlayed;
    const seen = successes.map(succeeded => {
      ({ state } = afterEpisodes(state, ten('A', succeeded), options));
      return state.A.pool;
    });
    expect(seen).toEqual(pools);
  });

  it('is judged by the moving average of its rate, which starts with the first rate', () => {
    const slow = { ...options, decay: 0.75 };
    const first = afterEpisodes(nothingPlayed, ten('A', 10), slow);
    expect(first.state).toEqual({ A: { success: 1, pool: 'easy' } });
    expect(first.moves).toEqual([{ tag: 'A', from: 'normal', to: 'easy', success: 1 }]);
    const second = afterEpisodes(first.state, ten('A', 0), slow);
    expect(second.state).toEqual({ A: { success: 0.75, pool: 'easy' } }); // 0.75 · 1 + 0.25 · 0
    expect(second.moves).toEqual([]);
  });

  it('that was not played keeps its rate and its pool', () => {
    const before: CurriculumState = { A: { success: 0.9, pool: 'easy' } };
    expect(afterEpisodes(before, ten('B', 5), options).state).toEqual({
      ...before,
      B: { success: 0.5, pool: 'normal' },
    });
    expect(afterEpisodes(before, [], options)).toEqual({ state: before, moves: [] });
  });

  it('may have the name of a property of all objects', () => {
    expect(afterEpisodes(nothingPlayed, ten('constructor', 10), options).moves).toEqual([
      { tag: 'constructor', from: 'normal', to: 'easy', success: 1 },
    ]);
    expect(mixedGroups(['constructor', 'B'], [4, 4], nothingPlayed, options)).toEqual([4, 4]);
  });
});

describe('the groups of a step', () => {
  const state: CurriculumState = {
    Easy: { success: 1, pool: 'easy' },
    Normal: { success: 0.5, pool: 'normal' },
    Hard: { success: 0, pool: 'hard' },
  };
  it.each([
    ['as configured before the first step', nothingPlayed, [8, 8, 8], {}, [8, 8, 8]],
    // shares 4 : 16 : 8 of 48
    ['by the weights of the pools', state, [16, 16, 16], {}, [7, 27, 14]],
    ['in proportion to the configured numbers too', state, [8, 4, 4], { easy_weight: 0.5 }, [7, 6, 3]],
    ['at least one group per tag', state, [8, 8, 8], { easy_weight: 0, hard_weight: 0 }, [1, 22, 1]],
    ['no group for a tag with none', state, [0, 8, 8], { hard_weight: 0 }, [0, 15, 1]],
    [
      'as configured if all weights are 0',
      { ...state, Normal: { success: 1, pool: 'easy' } },
      [4, 4, 4],
      { easy_weight: 0, hard_weight: 0 },
      [4, 4, 4],
    ],
  ] as const)('are divided %s', (_, from, counts, changed, expected) => {
    expect(mixedGroups(['Easy', 'Normal', 'Hard'], counts, from, { ...options, ...changed })).toEqual(expected);
  });
});
