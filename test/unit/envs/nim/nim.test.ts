// Nim: the rules, the solver against all positions by search, and the turns and rewards of the two roles.
import { describe, expect, test } from 'vitest';
import nim from '../../../../envs/nim/index';
import { afterMove, isOver, legalMoves, nimSum, perfectMove, winningMove } from '../../../../envs/nim/game';
import { createSync } from '../../../support/sync-environment';

describe.each([Infinity, 3, 2, 1])('the solver, with at most %d objects a move', most => {
  const known = new Map<string, boolean>();
  /** Whether the player to move wins, by search over all games. */
  function wins(heaps: readonly number[]): boolean {
    const key = heaps.join();
    const found = known.get(key) ?? legalMoves(heaps, most).some(move => !wins(afterMove(heaps, move)));
    known.set(key, found);
    return found;
  }

  test('has a winning move in exactly the positions that a search finds won, and keeps the win', () => {
    for (let a = 0; a <= 5; a++)
      for (let b = 0; b <= 5; b++)
        for (let c = 0; c <= 5; c++) {
          const heaps = [a, b, c];
          const move = winningMove(heaps, most);
          expect([heaps, move !== undefined]).toEqual([heaps, wins(heaps)]);
          if (move) expect([heaps, move.count <= most, wins(afterMove(heaps, move))]).toEqual([heaps, true, false]);
        }
  });
});

test('the solver takes one object from a largest heap in a lost position', () => {
  expect(perfectMove([1, 3, 2], Infinity)).toEqual({ heap: 1, count: 1 });
  expect(nimSum([1, 3, 2], Infinity)).toBe(0);
  expect(perfectMove([6], 2)).toEqual({ heap: 0, count: 1 });
  expect(nimSum([6], 2)).toBe(0);
  expect(isOver([0, 0])).toBe(true);
});

test('the roles move in turns, with the legal moves of the position, and the last object decides', () => {
  const game = createSync(nim, nim.config.parse({ heaps: 2, largest: 2 }));
  let seed = 0;
  while (game.reset({ seed }).observation !== 'A 2, B 1') seed++;
  expect(game.reset({ seed })).toEqual({
    observation: 'A 2, B 1',
    role: 'first',
    actions: { 1: 'A1', 2: 'A2', 11: 'B1' },
  });
  expect(game.step(2)).toMatchObject({ observation: 'A 0, B 1\nOpponent: A2', role: 'second', actions: { 11: 'B1' } });
  expect(game.step(1)).toMatchObject({ role: 'second', reward: 0, info: { action_is_valid: false } });
  expect(game.step(11)).toEqual({
    observation: 'A 0, B 0\nOpponent: B1',
    reward: 1,
    terminated: true,
    truncated: false,
    info: { action_is_valid: true, action_is_effective: true, success: false },
    roles: { second: { success: true }, first: { reward: -1, success: false } },
  });
  expect(() => game.step(11)).toThrow('the game is over');
});

test.each(['perfect', 'random'] as const)('the plan wins against the %s opponent at every seed', opponent => {
  for (let seed = 0; seed < 50; seed++) {
    const game = createSync(nim, nim.config.parse({ opponent, heaps: 4, largest: 5 }));
    game.reset({ seed, member: seed % 3 });
    const steps = game.solve!()!.map(action => game.step(action));
    expect(steps.at(-1)).toMatchObject({ reward: 1, terminated: true, info: { success: true } });
  }
});

test('in self-play the solver plays both players: the first, who begins in a won position, takes the last object', () => {
  for (let seed = 0; seed < 50; seed++) {
    const game = createSync(nim, nim.config.parse({ heaps: 4, largest: 5 }));
    game.reset({ seed });
    const plan = game.solve!()!;
    const [first] = plan;
    game.step(first);
    expect(game.solve!() ?? []).toEqual(plan.slice(1)); // also in the lost position of the second player
    const steps = plan.slice(1).map(action => game.step(action));
    if (steps.length > 0) expect(steps.at(-1)).toMatchObject({ terminated: true, info: { success: true } });
    expect(plan.length % 2).toBe(1);
  }
});

test('the random solver plays legal moves to the end, and either player may win', () => {
  const winners = new Set<unknown>();
  for (let seed = 0; seed < 50; seed++) {
    const game = createSync(nim, nim.config.parse({ solver: 'random' }));
    game.reset({ seed });
    const plan = game.solve!()!;
    expect(game.solve!()).toEqual(plan);
    const steps = plan.map(action => game.step(action));
    for (const { info } of steps) expect(info.action_is_valid).toBe(true);
    expect(steps.at(-1)!.terminated).toBe(true);
    winners.add(steps.at(-1)!.info.success);
  }
  expect([...winners].sort()).toEqual([false, true]);
});

test('with a limit, larger moves are refused, and the instruction names the limit', () => {
  const limited = nim.config.parse({ heaps: 1, largest: 9, most: 2, opponent: 'perfect' });
  const game = createSync(nim, limited);
  let seed = 0;
  while (game.reset({ seed }).observation !== 'A 8') seed++;
  game.reset({ seed });
  expect(game.step('A3')).toMatchObject({ reward: 0, info: { action_is_valid: false } });
  expect(game.step('A2')).toMatchObject({ observation: 'A 5\nOpponent: A1' });
  expect((nim.instruction as (config: typeof limited) => string)(limited)).toContain('take one to 2 objects');
  for (let each = 0; each < 50; each++)
    expect(Number(String(createSync(nim, limited).reset({ seed: each }).observation).slice(2)) % 3).not.toBe(0);
});

test('with start any, the first position may be lost', () => {
  const game = createSync(nim, nim.config.parse({ heaps: 1, largest: 9, most: 2, start: 'any' }));
  const starts = Array.from({ length: 200 }, (_, seed) => game.reset({ seed }).observation);
  expect(new Set(starts)).toEqual(new Set(Array.from({ length: 9 }, (_, i) => `A ${i + 1}`)));
});

test('a perfect opponent punishes a mistake', () => {
  const game = createSync(nim, nim.config.parse({ opponent: 'perfect', heaps: 2, largest: 3 }));
  let seed = 0;
  while (game.reset({ seed }).observation !== 'A 3, B 1') seed++;
  game.reset({ seed });
  expect(game.step(3)).toMatchObject({ reward: -1, terminated: true, info: { success: false } });
});
