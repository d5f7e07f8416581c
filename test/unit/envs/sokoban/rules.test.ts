// Sokoban's rules on a tiny map, its exact rewards, its texts, and valid configurations.
import { describe, expect, test } from 'vitest';
import { drawRoom } from '../../../../envs/sokoban/generator';
import sokoban from '../../../../envs/sokoban/index';
import { push, type Room } from '../../../../envs/sokoban/room';
import { solveRoom } from '../../../../envs/sokoban/solver';
import { createSync } from '../../../support/sync-environment';

const symbols = '#_O√XPS';
/** A room from its drawing, `S` for a player on a target. */
function roomOf(...rows: string[]): Room {
  const codes = [...rows.join('')].map(symbol => symbols.indexOf(symbol));
  const fixed = Uint8Array.from(codes, code => (code === 0 ? 0 : [2, 3, 6].includes(code) ? 2 : 1));
  const state = Uint8Array.from(codes, code => (code === 6 ? 5 : code));
  const count = (...kinds: number[]) => codes.filter(code => kinds.includes(code)).length;
  const player = state.indexOf(5);
  return {
    height: rows.length,
    width: rows[0].length,
    fixed,
    state,
    player,
    boxes: count(3, 4),
    boxesOnTarget: count(3),
  };
}
const drawing = ({ state, fixed, width }: Room) =>
  [...state]
    .map((code, at) => (code === 5 && fixed[at] === 2 ? 'S' : symbols[code]))
    .join('')
    .replace(new RegExp(`.{${width}}(?=.)`, 'g'), '$&\n')
    .split('\n');
const [up, down, left, right] = [0, 1, 2, 3];

describe('a push', () => {
  const corridor = () => roomOf('######', '#PX_O#', '######');
  test('moves box and player, also onto the target', () => {
    const room = corridor();
    expect(push(room, right)).toBe(true);
    expect(drawing(room)[1]).toBe('#_PXO#');
    expect(room.boxesOnTarget).toBe(0);
    expect(push(room, right)).toBe(true);
    expect(drawing(room)[1]).toBe('#__P√#');
    expect(room.boxesOnTarget).toBe(1);
    expect(push(room, right)).toBe(false); // a wall behind the box
  });
  test('against a wall or two boxes does nothing', () => {
    const room = corridor();
    for (const move of [left, up, down]) expect(push(room, move)).toBe(false);
    const double = roomOf('#######', '#PXX_O#', '#####O#', '#######');
    expect(push(double, right)).toBe(false);
    expect(drawing(double)[1]).toBe('#PXX_O#');
  });
  test('takes a box off its target, and the player is then on it', () => {
    const room = roomOf('#####', '#P√_#', '#####');
    expect(push(room, right)).toBe(true);
    expect(drawing(room)[1]).toBe('#_SX#');
    expect(room.boxesOnTarget).toBe(0);
    expect(push(room, left)).toBe(true);
    expect(drawing(room)[1]).toBe('#POX#');
  });
});

describe('the solver', () => {
  test('returns the first of the shortest solutions', () => {
    expect(solveRoom(roomOf('######', '#PX_O#', '######'))).toEqual([right, right]);
    expect(solveRoom(roomOf('#####', '#P√_#', '#####'))).toEqual([]);
  });
  test('detects that there is none', () => {
    expect(solveRoom(roomOf('#####', '#X_P#', '#__O#', '#####'))).toBeUndefined();
  });
});

describe('rewards', () => {
  const config = sokoban.config.parse({ num_boxes: 2, dim_room: [8, 8], search_depth: 10 });
  test('pay a box moved onto its target, charge its removal, and pay for success at the last box', () => {
    const environment = createSync(sokoban, config);
    environment.reset({ seed: 0 });
    const rewards = (environment.solve!() as number[]).map(action => environment.step(action));
    expect(rewards.map(({ reward }) => reward).filter(reward => reward !== -0.1)).toEqual([0.9, 10.9]);
    expect(rewards.at(-1)).toMatchObject({ terminated: true, truncated: false, info: { success: true } });
    for (const action of [1, 2, 3, 4])
      // the episode is over, so actions have no effect
      expect(environment.step(action)).toMatchObject({ reward: 0, terminated: true, info: { success: true } });
  });
  test('max_steps truncates; an invalid action is not counted', () => {
    const environment = createSync(sokoban, sokoban.config.parse({ num_boxes: 1, max_steps: 2 }));
    environment.reset({ seed: 1 });
    const play = (action: number | string) => environment.step(action);
    expect(play(9)).toMatchObject({
      reward: 0,
      truncated: false,
      info: { action_is_valid: false, action_is_effective: false },
    });
    expect(play('Up')).toMatchObject({ reward: 0, info: { action_is_valid: false } });
    expect(play(2)).toMatchObject({
      reward: -0.1,
      terminated: false,
      truncated: false,
      info: { action_is_valid: true },
    });
    expect(play(2)).toMatchObject({ terminated: false, truncated: true, info: { success: false } });
  });
});

describe('observations', () => {
  const text = (observation_format: string, seed = 0) => {
    const config = sokoban.config.parse({ num_boxes: 1, observation_format });
    return (createSync(sokoban, config).reset({ seed }) as { observation: string }).observation;
  };
  const grid = '######\n#____#\n##O_P#\n###X_#\n###__#\n######';
  const coord = 'Board size: 6 rows x 6 cols (zero-indexed).\nTargets: (2, 2)\nBoxes: (3, 3)\nPlayer: (2, 4)';
  test('have the forms grid, coord and grid_coord', () => {
    expect(text('grid')).toBe(grid);
    expect(text('coord')).toBe(coord);
    expect(text('grid_coord')).toBe(`Coordinates: \n${coord}\nGrid Map: \n${grid}`);
  });
  test('use the symbols of a tag, with their legend', () => {
    const config = sokoban.config.parse({
      num_boxes: 1,
      grid_lookup: { 0: 'W', 1: '.', 2: 'G', 3: 'C', 4: 'B', 5: 'A', 6: '@' },
    });
    expect((createSync(sokoban, config).reset({ seed: 0 }) as { observation: string }).observation.split('\n')[2]).toBe(
      'WWG.AW',
    );
    expect(sokoban.legend!(config)).toEqual({
      W: 'wall',
      '.': 'empty',
      G: 'target',
      C: 'box on target',
      B: 'box',
      A: 'player',
      '@': 'player on target',
    });
    expect(sokoban.legend!({ ...config, observation_format: 'coord' })).toEqual({});
  });
  test('name the true corner in the instruction', () => {
    const instruction = sokoban.instruction as (config: unknown) => string;
    expect(instruction(sokoban.config.parse({ dim_x: 5, dim_y: 9, observation_format: 'coord' }))).toContain(
      'to (4, 8)',
    );
    expect(instruction(sokoban.config.parse({}))).not.toContain('(row, column)');
  });
});

test.each([
  [{ dim_room: [6] }, 'dim_room'],
  [{ dim_room: [3, 6] }, 'dim_room.0'],
  [{ num_boxes: 0 }, 'num_boxes'],
  [{ observation_format: 'image' }, 'observation_format'],
  [{ render_mode: 'human' }, 'render_mode'],
  [{ search_depth: 5000 }, 'search_depth'],
  [{ boxes: 2 }, ''],
])('the configuration %j is refused at its key', (config, path) => {
  const parsed = sokoban.config.safeParse(config);
  expect(parsed.error?.issues[0].path.join('.')).toBe(path);
});

test('an impossible room is refused by name instead of searched forever', () => {
  expect(() => drawRoom({ height: 4, width: 4, boxes: 4, searchDepth: 10 }, 7)).toThrow(
    'no room of 4 x 4 with 4 boxes and search_depth 10 was found from seed 7: lower num_boxes, enlarge dim_room or raise search_depth',
  );
});
