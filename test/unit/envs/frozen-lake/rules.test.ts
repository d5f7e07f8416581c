// FrozenLake's texts, its solver against the exact value of small lakes, and valid configurations.
import { describe, expect, test } from 'vitest';
import { dynamics, type Dynamics } from '../../../../envs/frozen-lake/dynamics';
import frozenLake from '../../../../envs/frozen-lake/index';
import { moved, type Lake } from '../../../../envs/frozen-lake/lake';
import { bestMoves, plan } from '../../../../envs/frozen-lake/solver';
import { createSync } from '../../../support/sync-environment';

/** A lake from its drawing: S start, F frozen, H hole, G goal. */
function lakeOf(...rows: string[]): Lake {
  const text = rows.join('');
  return {
    size: rows.length,
    tiles: Uint8Array.from(text, tile => ({ H: 1, G: 2 })[tile] ?? 0),
    start: text.indexOf('S'),
  };
}
const dry = dynamics(false, 0.8);
const planFrom = (lake: Lake, ice: Dynamics, cell: number) => plan(bestMoves(lake, ice), lake.size, cell);
const make = (config: Record<string, unknown>) => createSync(frozenLake, frozenLake.config.parse(config));

describe('observations', () => {
  const coord = (lines: string) => `Board size: 4 rows x 4 cols (zero-indexed).\n${lines}`;
  test('show the start, a hole and the goal in each format', () => {
    const environment = make({ is_slippery: false, p: 0.8, observation_format: 'grid_coord' });
    const { observation } = environment.reset({ seed: 0 }) as { observation: string };
    expect(environment.render!('grid')).toBe('__GP\nOO__\n_OO_\nO___');
    const start = coord('Start: (0, 3)\nGoal: (0, 2)\nPlayer: (0, 3)\nHoles: (1, 0), (1, 1), (2, 1), (2, 2), (3, 0)');
    expect(environment.render!('coord')).toBe(start);
    expect(observation).toBe(`Coordinates: \n${start}\nGrid Map: \n__GP\nOO__\n_OO_\nO___`);
    const play = (...actions: number[]) => actions.map(action => environment.step(action)).at(-1)!;
    expect(play(2, 1)).toMatchObject({ reward: 0, terminated: false });
    expect(environment.render!('grid')).toBe('__G_\nOOP_\n_OO_\nO___');
    expect(play(1)).toMatchObject({ reward: 0, terminated: true, info: { success: false, action_is_effective: true } });
    expect(environment.render!('grid')).toBe('__G_\nOX__\n_OO_\nO___');
    expect(environment.render!('coord')).toBe(
      coord('Start: (0, 3)\nGoal: (0, 2)\nPlayer in hole: (1, 1)\nHoles: (1, 0), (1, 1), (2, 1), (2, 2), (3, 0)'),
    );
    expect(play(3)).toMatchObject({ reward: 0, terminated: true, info: { action_is_effective: false } });
    environment.reset({ seed: 0 });
    expect(play(1)).toMatchObject({ reward: 1, terminated: true, info: { success: true } });
    expect(environment.render!('grid')).toBe('__√_\nOO__\n_OO_\nO___');
    expect(environment.render!('coord')).toBe(
      coord('Start: (0, 3)\nGoal: (0, 2)\nPlayer on goal: (0, 2)\nHoles: (1, 0), (1, 1), (2, 1), (2, 2), (3, 0)'),
    );
    expect(play(1)).toMatchObject({ reward: 0, terminated: true });
  });
  test('name the true corner in the instruction', () => {
    const instruction = frozenLake.instruction as (config: unknown) => string;
    expect(instruction(frozenLake.config.parse({ observation_format: 'grid_coord' }))).toContain('to (3, 3)');
  });
});

test('map_seed fixes the map while slips follow the seed', () => {
  const environment = make({ map_seed: 5 });
  const maps = [1, 2, 3].map(seed => (environment.reset({ seed }) as { observation: string }).observation);
  expect(new Set(maps).size).toBe(1);
  const walks = [1, 2, 3, 4, 5, 6].map(seed => {
    environment.reset({ seed });
    return [1, 2, 3, 4, 1, 2].map(action => environment.step(action).observation).join('|');
  });
  expect(new Set(walks).size).toBeGreaterThan(1);
});

test('an invalid action does not slip', () => {
  const environment = make({});
  const { observation } = environment.reset({ seed: 4 }) as { observation: string };
  for (const action of [0, 5, 'Left', 1.5]) {
    const info = { action_is_effective: false, action_is_valid: false, success: false };
    expect(environment.step(action)).toEqual({ observation, reward: 0, terminated: false, truncated: false, info });
  }
});

describe('the solver', () => {
  test('takes the shortest way without slipping, around holes', () => {
    expect(planFrom(lakeOf('SHG', 'FHF', 'FFF'), dry, 0)).toEqual([1, 1, 2, 2, 3, 3]);
    expect(planFrom(lakeOf('SFF', 'FFF', 'FFG'), dry, 0)).toHaveLength(4);
  });
  test('has no plan when the goal is unreachable or the episode is over', () => {
    const lake = lakeOf('SHG', 'HHF', 'FFF');
    expect(planFrom(lake, dry, 0)).toBeUndefined();
    expect(planFrom(lake, dry, 2)).toBeUndefined();
    expect(planFrom(lake, dry, 1)).toBeUndefined();
  });
  test('walks into the wall when every slip is safe, and the plan ends there', () => {
    const cliff = lakeOf('SFFF', 'HHHF', 'FFFF', 'FFFG');
    const best = bestMoves(cliff, dynamics(true, 1 / 3));
    expect(best[1]).toBe(3); // up, into the wall, never beside the holes
    expect(planFrom(cliff, dynamics(true, 1 / 3), 1)).toEqual([3]);
  });
  test('satisfies the Bellman equation with its moves', () => {
    const lake = lakeOf('SFFF', 'FHFH', 'FFFH', 'HFFG');
    const ice = dynamics(true, 0.8);
    const best = bestMoves(lake, ice);
    const chance = (policy: (cell: number) => number) => {
      let values = new Float64Array(16);
      for (let sweep = 0; sweep < 2000; sweep++)
        values = values.map((_, cell) =>
          lake.tiles[cell] === 0
            ? ice[policy(cell)].reduce((sum, { move, probability }) => {
                const next = moved(cell, move, 4);
                return sum + probability * (lake.tiles[next] === 2 ? 1 : 0.99 * values[next]);
              }, 0)
            : 0,
        );
      return values;
    };
    const optimal = chance(cell => best[cell]);
    for (let cell = 0; cell < 16; cell++)
      for (let move = 0; move < 4; move++) {
        if (lake.tiles[cell] !== 0) continue;
        const other = chance(at => (at === cell ? move : best[at]));
        expect(other[cell]).toBeLessThanOrEqual(optimal[cell] + 1e-9);
      }
  });
});

test.each([
  [{ size: 1 }, 'size'],
  [{ p: 1.5 }, 'p'],
  [{ success_rate: -1 }, 'success_rate'],
  [{ observation_format: 'rgb' }, 'observation_format'],
  [{ slippery: true }, ''],
])('the configuration %j is refused at its key', (config, path) => {
  expect(frozenLake.config.safeParse(config).error?.issues[0].path.join('.')).toBe(path);
});
