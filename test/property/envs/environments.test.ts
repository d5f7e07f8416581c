// Invariants of every episode of the built-in environments, for any seed, configuration and actions.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Action } from '../../../envs/api/environment';
import bandit from '../../../envs/bandit/index';
import frozenLake from '../../../envs/frozen-lake/index';
import sokoban from '../../../envs/sokoban/index';
import { createSync, type SyncEnvironment } from '../../support/sync-environment';

const seeds = fc.nat({ max: 0xffffffff });
const actions = fc.array(
  fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 4 }) }, fc.integer(), fc.string()),
  {
    maxLength: 40,
  },
);
const formats = fc.constantFrom('grid', 'coord', 'grid_coord');
const sokobans = fc.record({
  dim_room: fc.tuple(fc.integer({ min: 5, max: 9 }), fc.integer({ min: 5, max: 9 })),
  num_boxes: fc.integer({ min: 1, max: 2 }),
  search_depth: fc.integer({ min: 8, max: 60 }),
  observation_format: formats,
});
const lakes = fc.record({
  size: fc.integer({ min: 2, max: 8 }),
  p: fc.double({ min: 0.3, max: 1, noNaN: true }),
  success_rate: fc.double({ min: 0, max: 1, noNaN: true }),
  is_slippery: fc.boolean(),
  observation_format: formats,
});
const games = fc.oneof(
  sokobans.map(config => () => createSync(sokoban, sokoban.config.parse(config))),
  lakes.map(config => () => createSync(frozenLake, frozenLake.config.parse(config))),
  fc.constantFrom('train', 'test').map(split => () => createSync(bandit, bandit.config.parse({ split }))),
);

/** All outputs of an episode, as text. */
function transcript(environment: SyncEnvironment, seed: number, member: number, taken: readonly Action[]): string {
  const shown = [JSON.stringify(environment.reset({ seed, member }))];
  for (const action of taken) shown.push(JSON.stringify(environment.step(action)));
  return shown.join('\n');
}

describe('every environment', () => {
  test('accepts any action sequence and returns valid values', () => {
    fc.assert(
      fc.property(games, seeds, actions, (create, seed, taken) => {
        const environment = create();
        environment.reset({ seed });
        for (const action of taken) {
          const { observation, reward, terminated, truncated, info } = environment.step(action);
          expect(typeof observation).toBe('string');
          expect(Number.isFinite(reward)).toBe(true);
          expect([typeof terminated, typeof truncated]).toEqual(['boolean', 'boolean']);
          expect(info.success).toBe(terminated && info.success);
          if (info.action_is_valid === false) expect([reward, info.action_is_effective]).toEqual([0, false]);
        }
      }),
    );
  });

  test('replays to the same transcript from (seed, member, actions), in a fresh instance and in a reused one', () => {
    fc.assert(
      fc.property(games, seeds, fc.nat({ max: 15 }), actions, (create, seed, member, taken) => {
        const used = create();
        const first = transcript(used, seed, member, taken);
        expect(transcript(create(), seed, member, taken)).toBe(first);
        expect(transcript(used, seed, member, taken)).toBe(first);
      }),
    );
  });
});

describe('sokoban', () => {
  const symbols = (environment: SyncEnvironment) => [...String(environment.render!('grid'))];
  const count = (seen: string[], of: string) => seen.filter(symbol => of.includes(symbol)).length;

  test('conserves walls, boxes, targets and the player', () => {
    fc.assert(
      fc.property(sokobans, seeds, actions, (config, seed, taken) => {
        const environment = createSync(sokoban, sokoban.config.parse(config));
        environment.reset({ seed });
        const walls = (seen: string[]) => seen.map(symbol => symbol === '#');
        const before = walls(symbols(environment));
        for (const action of [0, ...taken]) {
          environment.step(action);
          const seen = symbols(environment);
          expect([count(seen, 'X√'), count(seen, 'O√S'), count(seen, 'PS')]).toEqual([
            config.num_boxes,
            config.num_boxes,
            1,
          ]);
          expect(walls(seen)).toEqual(before);
        }
      }),
    );
  });

  test('starts unsolved, and its solution solves it for the reward of its moves and boxes', () => {
    fc.assert(
      fc.property(sokobans, seeds, (config, seed) => {
        const environment = createSync(sokoban, sokoban.config.parse(config));
        environment.reset({ seed });
        const solution = environment.solve!() as number[];
        expect(solution.length).toBeGreaterThan(0);
        const steps = solution.map(action => environment.step(action));
        expect(steps.map(({ terminated }) => terminated)).toEqual(solution.map((_, i) => i === solution.length - 1));
        const total = steps.reduce((sum, { reward }) => sum + reward, 0);
        expect(total).toBeCloseTo(10 + config.num_boxes - 0.1 * solution.length, 9);
        expect(environment.solve!()).toEqual([]);
      }),
    );
  });
});

describe('frozen lake', () => {
  test('has one goal, reachable by a plan that assumes no slipping', () => {
    fc.assert(
      fc.property(lakes, seeds, (config, seed) => {
        const environment = createSync(frozenLake, frozenLake.config.parse({ ...config, is_slippery: false }));
        environment.reset({ seed });
        const grid = String(environment.render!('grid'));
        expect([grid.match(/G/g)?.length, grid.match(/P/g)?.length]).toEqual([1, 1]);
        const steps = (environment.solve!() as number[]).map(action => environment.step(action));
        expect(steps.at(-1)).toMatchObject({ reward: 1, terminated: true });
        expect(steps.slice(0, -1).some(({ terminated }) => terminated)).toBe(false);
        expect(environment.solve!()).toBeUndefined();
      }),
    );
  });

  test('is solved more often on slippery ice if moves are planned again after each step', () => {
    const environment = createSync(frozenLake, frozenLake.config.parse({ p: 0.8 }));
    /** Number of goals reached on 200 lakes with at most 30 moves each. */
    const goals = (choose: (step: number) => number) => {
      let sum = 0;
      for (let seed = 0; seed < 200; seed++) {
        environment.reset({ seed });
        for (let step = 0, over = false; step < 30 && !over; step++) {
          const { terminated, reward } = environment.step(choose(step));
          sum += reward;
          over = terminated;
        }
      }
      return sum;
    };
    const planned = goals(() => (environment.solve!() as number[])[0]);
    const blind = goals(step => 1 + (step % 4));
    expect(planned).toBeGreaterThan(170);
    expect(blind).toBeLessThan(planned / 2);
  });
});
