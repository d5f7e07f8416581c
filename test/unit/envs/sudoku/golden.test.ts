// Puzzles, solutions and rewards equal RAGEN's procedure on CPython's generator (test/golden/make/envs_sudoku.py), seed
// by seed.
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/sudoku.json';
import { drawPuzzle, type shares } from '../../../../envs/sudoku/puzzle';
import { completions } from '../../../../envs/sudoku/solver';
import { checkSeeds, Trace } from '../../../golden/envs/trace';
import sudoku from '../../../../envs/sudoku/index';
import { createSync } from '../../../support/sync-environment';
import { partial } from '../../../support/partial';

type Row = [
  seed: number,
  solution: string,
  puzzle: string,
  one: boolean | null,
  log: [string, number][],
  trace: string,
];

const code = (grid: Iterable<number>) => Array.from(grid, number => '0123456789abcdefg'[number]).join('');

/** The grid of a simple text, in the golden data's format. */
const shown = (text: unknown) =>
  code([...String(text).matchAll(/\d+|\./g)].map(([cell]) => (cell === '.' ? 0 : Number(cell))));

describe.each(golden)('$n, $difficulty', ({ n, difficulty, rows }) => {
  const config = sudoku.config.parse({ grid_size: n, difficulty, max_steps: 10 });

  test('each seed equals the golden data', () =>
    checkSeeds(partial<Row[]>(rows), (seed, full, puzzle, one, log, digest) => {
      const drawn = drawPuzzle(n, difficulty as keyof typeof shares, false, seed);
      expect([code(drawn.solution), code(drawn.initial)]).toEqual([full, puzzle]);
      if (one !== null) {
        const unique = drawPuzzle(n, difficulty as keyof typeof shares, true, seed);
        expect(completions(drawn.initial, 2).length).toBe(one ? 1 : 2);
        expect(completions(unique.initial, 2).map(code)).toEqual([full]);
        expect(code(unique.initial) === puzzle).toBe(one);
      }
      const environment = createSync(sudoku, config);
      environment.reset({ seed });
      const trace = new Trace(puzzle);
      for (const [answer, reward] of log) {
        const step = environment.step(answer);
        expect([answer, step.reward]).toEqual([answer, reward]);
        trace.step(shown(environment.render!('simple')), step);
      }
      expect(trace.digest).toBe(digest);
    }));
});
