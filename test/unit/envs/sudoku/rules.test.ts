// Sudoku: how answers are read, its texts, rewards and end, its plan after mistakes, and valid configurations.
import { describe, expect, test } from 'vitest';
import sudoku from '../../../../envs/sudoku/index';
import { plan } from '../../../../envs/sudoku/plan';
import { detailedText, readPlacement, simpleText } from '../../../../envs/sudoku/texts';
import { createSync } from '../../../support/sync-environment';

const grid = (text: string) => Uint8Array.from(text.replaceAll(/\s/g, ''), Number);
const make = (config: Record<string, unknown>) => createSync(sudoku, sudoku.config.parse(config));

test.each([
  ['place 7 at row 4 col 1', 27, 7],
  ['Please  PLACE 7  at row 4 col 1 now', 27, 7],
  ['place 7 at (4, 1)', 27, 7],
  ['place 7 at 4,1', 27, 7],
  ['7 at 4, 1', 27, 7],
  ['(4,1,7)', 27, 7],
  ['4,1,7', 27, 7],
  ['that is (7,4,1)', 27, 7], // "at" within a word puts the number first, as in RAGEN
])('the answer "%s" is read as a placement', (answer, cell, number) => {
  expect(readPlacement(answer, 9)).toEqual({ cell, number });
});

test.each([
  ['place 7 at row 10 col 1', 'Row 10 is out of range (1-9)'],
  ['1,0,3', 'Column 0 is out of range (1-9)'],
  ['1,1,99999999999999999999', 'Number 99999999999999999999 is out of range (1-9)'],
  ['4 1 7', "Could not parse action: '4 1 7'. Expected format: 'place 5 at row 2 col 3' or '2,3,5'"],
])('%s is refused', (answer, error) => {
  expect(readPlacement(answer, 9)).toEqual({ error });
});

test('a grid is printed in each format', () => {
  const initial = grid('1000 0030 0200 0004');
  const now = grid('1200 0030 0200 0004');
  expect(simpleText(now)).toBe('1 2 | . .\n. . | 3 .\n---------\n. 2 | . .\n. . | . 4');
  expect(detailedText(now, initial, '✓ Correct! Placed 2 at (1,2)')).toBe(
    `${'='.repeat(50)}\nSUDOKU PUZZLE\n${'='.repeat(50)}
[1] 2 |  .  .
 .  . | [3] .
-------------
 . [2]|  .  .
 .  . |  . [4]

Legend: [N]=initial cell, N=user-placed, *N*=conflict, .=empty

✓ Correct! Placed 2 at (1,2)`,
  );
});

describe('an episode', () => {
  const environment = make({
    grid_size: 4,
    difficulty: 'easy',
    unique_solution: true,
    render_format: 'with_feedback',
    max_steps: 9,
  });
  const play = (answer: string) => environment.step(answer);
  const { observation } = environment.reset({ seed: 2 }) as { observation: string };
  const way = environment.solve!() as string[];

  test('shows the candidates and the progress', () => {
    expect(way).toHaveLength(6);
    expect(observation.split('\n').slice(-4)).toEqual([
      expect.stringMatching(/^ {2}- \(\d,\d\): \[[1-4](, [1-4])*\]$/),
      '',
      'Progress: 10/16 cells filled (10 initial, 0 placed)',
      'Steps: 0/9',
    ]);
  });
  test('pays for each placement and for completing the grid', () => {
    expect(play('nothing')).toMatchObject({ reward: -0.1, info: { action_is_valid: false } });
    for (const [i, answer] of way.entries()) {
      const { reward, terminated, info, observation } = play(answer);
      const last = i === way.length - 1;
      expect([reward, terminated, info.success]).toEqual([last ? 11 : 1, last, last]);
      expect(info).toMatchObject({ correct_placement: true, cells_remaining: 5 - i, steps_remaining: 7 - i });
      expect(observation).toContain(`✓ Correct! Placed ${answer.split(' ')[1]} at (`);
      if (last) expect(observation).toContain('\n🎉 Congratulations! Puzzle solved!');
    }
    expect(environment.solve!()).toEqual([]);
  });
  test('ends at max_steps, even if nothing was placed', () => {
    environment.reset({ seed: 2 });
    const steps = Array.from({ length: 9 }, () => play(way[0]));
    expect(steps.map(({ truncated }) => truncated)).toEqual([...new Array<boolean>(8).fill(false), true]);
    expect(steps.map(({ reward }) => reward)).toEqual([1, ...new Array<number>(8).fill(-0.1)]); // repeating the number conflicts too
    expect(environment.solve!()).toBeUndefined();
  });
});

test('a legal number outside the solution pays half; a given cell and a conflict are explained', () => {
  const environment = make({ grid_size: 4, difficulty: 'hard' });
  environment.reset({ seed: 0 });
  const answers = Array.from({ length: 64 }, (_, i) => `${1 + (i >> 4)},${1 + ((i >> 2) & 3)},${1 + (i & 3)}`);
  const seen = answers.map(answer => environment.step(answer));
  const withError = (error: RegExp) => seen.find(({ info }) => error.test(String(info.error)))!;
  expect(seen.some(({ reward, info }) => reward === 0.5 && info.correct_placement === false)).toBe(true);
  expect(withError(/^Cannot modify initial cells$/)).toMatchObject({ reward: -0.1 });
  expect(withError(/^Cannot/).observation).toMatch(/\n❌ Cannot modify initial cell at \(\d,\d\)$/);
  expect(withError(/conflicts/).info.error).toMatch(
    /^Number \d conflicts with (row \d|column \d|box \(\d,\d\))(, (column \d|box \(\d,\d\)))*$/,
  );
  expect(seen.some(({ observation }) => String(observation).includes('⚠ Placed'))).toBe(true);
});

test('the plan first moves a blocking number away', () => {
  const initial = grid('0000 0000 3421 2143');
  const solution = grid('1234 4312 3421 2143');
  const swapped = grid('4200 0300 3421 2143'); // 4 and 1 in each other's cells would block each other
  const way = plan(swapped, initial, solution, 20)!;
  const after = swapped.slice();
  for (const { cell, number } of way) after[cell] = number;
  expect(after.includes(0)).toBe(false);
  expect(plan(swapped, initial, solution, 1)).toBeUndefined();
});

test.each([
  [{ grid_size: 6 }, 'grid_size'],
  [{ difficulty: 'evil' }, 'difficulty'],
  [{ size: 9 }, ''],
])('the configuration %j is refused at its key', (config, path) => {
  expect(sudoku.config.safeParse(config).error?.issues[0].path.join('.')).toBe(path);
});
