// Invariants of every episode of Sudoku, 2048 and the Rubik's cube, for any seed, configuration and actions.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Action, StepResult } from '../../../envs/api/environment';
import game2048 from '../../../envs/game-2048/index';
import { linesOf, slide } from '../../../envs/game-2048/grid';
import rubikscube from '../../../envs/rubikscube/index';
import { isSolved, solvedCube, turned, turns } from '../../../envs/rubikscube/cube';
import { solveCube } from '../../../envs/rubikscube/solver';
import sudoku from '../../../envs/sudoku/index';
import { isAllowed } from '../../../envs/sudoku/grid';
import { drawPuzzle } from '../../../envs/sudoku/puzzle';
import { completions } from '../../../envs/sudoku/solver';
import { createSync, type SyncEnvironment } from '../../support/sync-environment';

const seeds = fc.nat({ max: 0xffffffff });
const sudokus = fc.record({
  grid_size: fc.constantFrom(4, 9),
  difficulty: fc.constantFrom('easy' as const, 'medium' as const, 'hard' as const),
  unique_solution: fc.boolean(),
  max_steps: fc.integer({ min: 1, max: 30 }),
  render_format: fc.constantFrom('simple', 'detailed', 'with_feedback'),
});
const cubes = fc.record({
  scramble_depth: fc.integer({ min: 0, max: 6 }),
  max_steps: fc.integer({ min: 1, max: 12 }),
  real_back_turn: fc.boolean(),
});
const grids = fc.record({
  size: fc.integer({ min: 2, max: 5 }),
  two_prob: fc.double({ min: 0, max: 1, noNaN: true }),
  use_log_reward: fc.boolean(),
});
const placements = fc
  .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 }))
  .map(([number, row, column]) => `place ${number} at row ${row} col ${column}`);
const actions = fc.array(
  fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 0, max: 12 }) },
    { weight: 9, arbitrary: placements },
    fc.integer(),
    fc.string(),
  ),
  { maxLength: 40 },
);
const games = fc.oneof(
  sudokus.map(config => () => createSync(sudoku, sudoku.config.parse(config))),
  cubes.map(config => () => createSync(rubikscube, rubikscube.config.parse(config))),
  grids.map(config => () => createSync(game2048, game2048.config.parse(config))),
);

function transcript(environment: SyncEnvironment, seed: number, taken: readonly Action[]): string {
  return JSON.stringify([environment.reset({ seed }), ...taken.map(action => environment.step(action))]);
}

describe('every puzzle', () => {
  test('accepts any action sequence and returns valid values; nothing changes after the end', () => {
    fc.assert(
      fc.property(games, seeds, actions, (create, seed, taken) => {
        const environment = create();
        environment.reset({ seed });
        let end: StepResult | undefined;
        for (const action of taken) {
          const step = environment.step(action);
          const { observation, reward, terminated, truncated, info } = step;
          expect(typeof observation).toBe('string');
          expect(Number.isFinite(reward)).toBe(true);
          expect(terminated && truncated).toBe(false);
          if (info.success) expect(terminated).toBe(true);
          if (info.action_is_valid === false) expect(info.action_is_effective).toBe(false);
          if (end) {
            expect([observation, terminated, truncated]).toEqual([end.observation, end.terminated, end.truncated]);
            expect([reward, info.action_is_effective, info.success]).toEqual([0, false, end.info.success]);
          } else if (terminated || truncated) end = step;
        }
      }),
    );
  });

  test('replays to the same transcript from (seed, actions), in a fresh instance and in a reused one', () => {
    fc.assert(
      fc.property(games, seeds, actions, (create, seed, taken) => {
        const used = create();
        const first = transcript(used, seed, taken);
        expect(transcript(create(), seed, taken)).toBe(first);
        expect(transcript(used, seed, taken)).toBe(first);
      }),
    );
  });
});

describe('sudoku', () => {
  test('has a full grid that keeps the rules, a unique puzzle with only that solution, and as many empty cells as possible', () => {
    fc.assert(
      fc.property(sudokus, seeds, ({ grid_size: n, difficulty }, seed) => {
        const { initial, solution } = drawPuzzle(n, difficulty, true, seed);
        for (const [cell, number] of solution.entries()) {
          const without = solution.slice();
          without[cell] = 0;
          expect(isAllowed(without, cell, number)).toBe(true);
        }
        expect(completions(initial, 2)).toEqual([solution]);
        expect(initial.every((number, cell) => number === 0 || number === solution[cell])).toBe(true);
        if (difficulty === 'easy' && n === 9) expect(initial.filter(number => number === 0).length).toBe(32);
      }),
      { numRuns: 60 },
    );
  });

  test('has a plan at the start, and every returned plan solves the puzzle', () => {
    fc.assert(
      fc.property(sudokus, seeds, actions, (given, seed, taken) => {
        const environment = createSync(sudoku, sudoku.config.parse({ ...given, max_steps: 300 }));
        environment.reset({ seed });
        const first = environment.solve!() as string[];
        expect(first.length).toBeGreaterThan(0);
        for (const action of taken) environment.step(action);
        const plan = environment.solve!() as string[] | undefined;
        if (!plan) return;
        const steps = plan.map(action => environment.step(action));
        expect(steps.every(({ info }) => info.action_is_valid)).toBe(true);
        expect(steps.at(-1)).toMatchObject({ terminated: true, info: { success: true } });
      }),
      { numRuns: 60 },
    );
  });
});

describe('2048', () => {
  test('keeps the sum of the tiles in a move, and moves mirrored grids alike', () => {
    const tiles = fc.constantFrom(0, 0, 2, 2, 4, 8, 16);
    fc.assert(
      fc.property(fc.array(tiles, { minLength: 16, maxLength: 16 }), grid => {
        const lines = linesOf(4);
        const flip = (cells: readonly number[]) => cells.map((_, at) => cells[(at & ~3) + 3 - (at & 3)]);
        const sum = (cells: readonly number[]) => cells.reduce((total, tile) => total + tile, 0);
        for (const way of lines) expect(sum(slide(grid, way).grid)).toBe(sum(grid));
        expect(flip(slide(flip(grid), lines[1]).grid)).toEqual(slide(grid, lines[3]).grid);
        expect(slide(grid, lines[1]).merged).toBe(slide(grid, lines[3]).merged);
      }),
    );
  });
});

describe('the cube', () => {
  const moves = fc.array(fc.nat({ max: 11 }), { maxLength: 7 });

  test('returns to the start after a move and its inverse or four equal moves, and keeps the corners of a real cube', () => {
    const corners = [
      [0, 4, 17],
      [1, 13, 16],
      [2, 5, 8],
      [3, 9, 12],
      [20, 10, 7],
      [21, 11, 14],
      [22, 6, 19],
      [23, 15, 18],
    ];
    const named = (cube: Uint8Array) =>
      corners
        .map(at =>
          at
            .map(i => cube[i])
            .sort()
            .join(''),
        )
        .sort()
        .join(' ');
    fc.assert(
      fc.property(moves, fc.boolean(), (taken, real) => {
        const tables = turns(real);
        let cube = solvedCube();
        for (const move of taken) {
          const next = turned(cube, tables[move]);
          expect(turned(next, tables[move ^ 1])).toEqual(cube);
          expect(turned(turned(turned(next, tables[move]), tables[move]), tables[move])).toEqual(cube);
          cube = next;
        }
        if (real) expect(named(cube)).toBe(named(solvedCube()));
      }),
    );
    expect(named(turned(turned(solvedCube(), turns(false)[6]), turns(false)[10]))).not.toBe(named(solvedCube())); // RAGEN's B
  });

  test('has a solver whose solution is no longer than the scramble', () => {
    fc.assert(
      fc.property(moves, fc.boolean(), (taken, real) => {
        const tables = turns(real);
        const cube = taken.reduce((state, move) => turned(state, tables[move]), solvedCube());
        const way = solveCube(cube, tables)!;
        expect(way.length).toBeLessThanOrEqual(taken.length);
        expect(isSolved(way.reduce((state, move) => turned(state, tables[move]), cube))).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  test("is solved by the episode's solution, even when the scramble cancels out", () => {
    fc.assert(
      fc.property(cubes, seeds, (config, seed) => {
        const environment = createSync(rubikscube, rubikscube.config.parse({ ...config, max_steps: 12 }));
        environment.reset({ seed });
        const steps = (environment.solve!() as number[]).map(action => environment.step(action));
        expect(steps.map(({ reward }) => reward)).toEqual(steps.map((_, i) => (i === steps.length - 1 ? 1 : 0)));
        expect(steps.at(-1)!.info.success).toBe(true);
      }),
      { numRuns: 40 },
    );
  });
});
