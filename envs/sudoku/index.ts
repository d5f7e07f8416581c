// Sudoku (RAGEN): one number per step. The reward for a legal number is 1 if it equals the stored solution's number in
// that cell, otherwise 0.5. The number that completes the grid earns 10 more. The reward for an invalid answer is -0.1.
// Illegal numbers are rejected, so a grid never violates a rule. The same seed gives the same puzzle as in RAGEN. But
// with `unique_solution`, a puzzle that has several solutions in RAGEN gets more given numbers. Unlike in RAGEN, an
// episode also ends at max_steps if its last answer was invalid.
import { z } from 'zod';
import { defineEnvironment, type Observation } from '../api/environment';
import { renderMode } from '../api/render-mode';
import { boxOf, candidates, clash, type Grid } from './grid';
import { sudokuPicture } from './picture';
import { plan } from './plan';
import { drawPuzzle } from './puzzle';
import { detailedText, feedbackText, list, cellText, readPlacement, simpleText } from './texts';

const config = z.strictObject({
  grid_size: z
    .literal([4, 9, 16])
    .default(9)
    .describe('number of rows, which is also the number of columns and of different numbers'),
  difficulty: z
    .enum(['easy', 'medium', 'hard'])
    .default('easy')
    .describe('share of empty cells: easy: 40 %, medium: 50 %, hard: 60 %'),
  unique_solution: z
    .boolean()
    .default(false)
    .describe(
      'true: each puzzle has exactly one solution; false: the puzzles are those of RAGEN, which can have several',
    ),
  max_steps: z.int().min(1).default(81).describe('number of steps after which an unfinished episode is truncated'),
  render_mode: renderMode,
  render_format: z.enum(['simple', 'detailed', 'with_feedback']).default('detailed'),
  show_conflicts: z.boolean().default(true).describe('no effect, as in RAGEN: conflicts cannot occur'),
  show_valid_numbers: z
    .boolean()
    .default(true)
    .describe('true: candidates are shown when at most ten cells are empty (only if render_format is with_feedback)'),
  show_candidates: z.boolean().default(false).describe('no effect, as in RAGEN'),
  correct_placement_score: z.number().default(1),
  invalid_action_score: z.number().default(-0.1),
  completion_bonus: z.number().default(10),
});

export default defineEnvironment({
  name: 'sudoku',
  config,
  instruction: ({ grid_size: n, render_mode }) =>
    `Solve the Sudoku: every row, every column and every box must hold each number from 1 to ${n} once. Numbers that are given stay as` +
    (render_mode === 'rgb_array'
      ? ' they are. The state is a picture: given numbers are black, placed numbers blue.'
      : ' they are; dots are empty cells.') +
    ' Place numbers one by one, as <answer> place 3 at row 4 col 1 </answer> or, as row, column and number,' +
    ' <answer> 4,1,3 </answer>.',

  create(config) {
    const { grid_size: n, max_steps } = config;
    let grid: Grid;
    let initial: Grid;
    let solution: Grid;
    let steps = 0;
    let feedback = '';
    let over = false;

    const render = (mode: string): Observation => {
      if (mode === 'rgb_array')
        return { text: feedback ? `<image>\n${feedback}` : '<image>', images: [sudokuPicture(grid, initial)] };
      if (mode === 'simple') return simpleText(grid);
      const text = detailedText(grid, initial, feedback);
      if (mode !== 'with_feedback') return text;
      return `${text}\n${feedbackText(grid, initial, config.show_valid_numbers, steps, max_steps)}`;
    };
    const shown = config.render_mode === 'text' ? config.render_format : config.render_mode;
    const left = () => grid.filter(number => number === 0).length;

    /** Applies an answer to the grid; returns its reward and info. */
    const place1 = (answer: string): { reward: number; info: Record<string, unknown> } => {
      const refuse = (said: string, error: string, more = {}) => {
        feedback = `❌ ${said}`;
        const info = { action_is_effective: false, action_is_valid: false, success: false, error, ...more };
        return { reward: config.invalid_action_score, info };
      };
      const read = readPlacement(answer, n);
      if ('error' in read) return refuse(`Invalid action format: ${read.error}`, read.error);
      const { cell, number } = read;
      if (initial[cell] !== 0)
        return refuse(`Cannot modify initial cell at ${cellText(cell, n)}`, 'Cannot modify initial cells');
      const { row, column, box } = clash(grid, cell, number);
      if (row || column || box) {
        const where = [
          ...(row ? [`row ${Math.floor(cell / n) + 1}`] : []),
          ...(column ? [`column ${(cell % n) + 1}`] : []),
          ...(box
            ? [
                `box (${boxOf(cell, n)
                  .map(at => at + 1)
                  .join(',')})`,
              ]
            : []),
        ].join(', ');
        const valid_numbers = candidates(grid, cell);
        const hint =
          valid_numbers.length > 0 ? `\n   Valid numbers for ${cellText(cell, n)}: ${list(valid_numbers)}` : '';
        const error = `Number ${number} conflicts with ${where}`;
        return refuse(`Invalid placement: ${number} conflicts with ${where}${hint}`, error, { valid_numbers });
      }
      grid[cell] = number;
      const correct = number === solution[cell];
      const success = left() === 0;
      feedback = correct
        ? `✓ Correct! Placed ${number} at ${cellText(cell, n)}`
        : `⚠ Placed ${number} at ${cellText(cell, n)} - Valid but not optimal`;
      if (success) feedback += '\n🎉 Congratulations! Puzzle solved!';
      const reward = config.correct_placement_score * (correct ? 1 : 0.5) + (success ? config.completion_bonus : 0);
      const info = {
        action_is_effective: true,
        action_is_valid: true,
        success,
        correct_placement: correct,
        steps_remaining: max_steps - steps,
        cells_filled: grid.length - left(),
        cells_remaining: left(),
      };
      return { reward, info };
    };

    return {
      reset({ seed }) {
        ({ initial, solution } = drawPuzzle(n, config.difficulty, config.unique_solution, seed));
        grid = initial.slice();
        steps = 0;
        feedback = '';
        over = false;
        return { observation: render(shown) };
      },

      step(action) {
        let reward = 0;
        let info: Record<string, unknown> = {
          action_is_effective: false,
          action_is_valid: false,
          success: left() === 0,
        };
        if (!over) {
          steps++;
          ({ reward, info } = place1(String(action)));
          over = left() === 0 || steps >= max_steps;
        }
        return {
          observation: render(shown),
          reward,
          terminated: left() === 0,
          truncated: over && left() > 0,
          info,
        };
      },

      render,
      solve: () =>
        plan(grid, initial, solution, over ? 0 : max_steps - steps)?.map(
          ({ cell, number }) => `place ${number} at row ${Math.floor(cell / n) + 1} col ${(cell % n) + 1}`,
        ),
    };
  },
});
