// 2048's moves on single rows, its texts and rewards, its end, and valid configurations.
import { expect, test } from 'vitest';
import type { StepResult } from '../../../../envs/api/environment';
import { linesOf, slide } from '../../../../envs/game-2048/grid';
import game2048 from '../../../../envs/game-2048/index';
import { createSync } from '../../../support/sync-environment';

const [up, right, down, left] = linesOf(4);
const row = (...tiles: number[]) => [...tiles, ...new Array<number>(12).fill(0)];
const column = (...tiles: number[]) => tiles.flatMap(tile => [tile, 0, 0, 0]);

test.each([
  [[0, 2, 0, 2], left, [4, 0, 0, 0], 4],
  [[0, 2, 0, 2], right, [0, 0, 0, 4], 4],
  [[4, 2, 2, 4], left, [4, 4, 4, 0], 4], // no tile merges twice
  [[2, 2, 2, 2], left, [4, 4, 0, 0], 8],
  [[2, 2, 2, 0], left, [4, 2, 0, 0], 4], // merges start at the edge moved towards
  [[2, 2, 2, 0], right, [0, 0, 2, 4], 4],
  [[4, 2, 0, 0], left, [4, 2, 0, 0], 0],
])('a row %j slides', (tiles, way, after, merged) => {
  const result = slide(row(...tiles), way);
  expect(result).toEqual({ grid: row(...after), merged, moved: after.join() !== tiles.join() });
});

test('columns slide up and down', () => {
  expect(slide(column(2, 0, 2, 4), up).grid).toEqual(column(4, 4, 0, 0));
  expect(slide(column(2, 0, 2, 4), down).grid).toEqual(column(0, 0, 4, 4));
});

test('texts and log rewards are correct, and a move without effect changes nothing', () => {
  const environment = createSync(game2048, game2048.config.parse({}));
  const { observation } = environment.reset({ seed: 3 }) as { observation: string };
  expect(observation).toBe(
    `Current 2048 Grid:\nRow 1: [0, 2, 0, 0]\nRow 2: [0, 0, 0, 0]\nRow 3: [0, 0, 0, 0]\nRow 4: [2, 0, 0, 0]\n
Valid Actions: 0(Up), 1(Right), 2(Down), 3(Left).\nGoal: Merge same numbers to reach 2048.\nCurrent Score: 0\nWhat is your next move?`,
  );
  for (const action of ['Up', 4, -1, 0.5]) {
    const step = environment.step(action);
    expect(step).toMatchObject({
      observation,
      reward: 0,
      terminated: false,
      info: { action_is_valid: false, raw_reward: 0 },
    });
  }
  const rewards = new Map<number, number>();
  for (let i = 0; i < 60; i++) {
    const { reward, info } = environment.step(i % 2 ? 3 : 0);
    rewards.set(info.raw_reward as number, reward);
  }
  expect(rewards.get(0)).toBe(0);
  expect(rewards.get(8)).toBeCloseTo(0.1 * Math.log2(9), 12);
  expect(rewards.get(-0.1)).toBe(0);
});

test('a full grid without moves ends the game, without success below 2048', () => {
  const environment = createSync(game2048, game2048.config.parse({ size: 2, use_log_reward: false }));
  environment.reset({ seed: 1 });
  let last: StepResult;
  do {
    last = [0, 1, 2, 3].map(move => environment.step(move)).at(-1)!;
  } while (!last.terminated);
  expect(last.observation).toContain('Valid Actions: None.');
  expect(last.info).toMatchObject({ success: false, action_mask: [false, false, false, false] });
});

test.each([
  [{ size: 1 }, 'size'],
  [{ two_prob: 2 }, 'two_prob'],
  [{ aim: 4 }, ''],
  [{ goal: 2 }, 'goal'],
])('the configuration %j is refused at its key', (config, path) => {
  expect(game2048.config.safeParse(config).error?.issues[0].path.join('.')).toBe(path);
});

test('with a goal, the tile of the goal ends the game with success, and nothing changes afterwards', () => {
  const environment = createSync(game2048, game2048.config.parse({ size: 3, goal: 16 }));
  let ended = 0;
  for (let seed = 0; seed < 30; seed++) {
    const { observation } = environment.reset({ seed }) as { observation: string };
    expect(observation).toContain('\nGoal: Merge same numbers to reach 16.\n');
    let last: StepResult | undefined;
    for (let i = 0; i < 60 && !last?.terminated; i++) {
      last = environment.step([3, 2, 3, 2, 1, 0][i % 6]);
      const reached = (last.info.max_tile as number) >= 16;
      expect(last.info.success).toBe(reached);
      if (reached) expect(last.terminated).toBe(true);
    }
    if (!last?.info.success) continue;
    ended++;
    for (const move of [0, 1, 2, 3])
      expect(environment.step(move)).toMatchObject({ observation: last.observation, reward: 0, terminated: true });
  }
  expect(ended).toBeGreaterThan(5);
});
