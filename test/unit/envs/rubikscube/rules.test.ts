// The cube's texts, its ends, and valid configurations.
import { expect, test } from 'vitest';
import rubikscube from '../../../../envs/rubikscube/index';
import { createSync } from '../../../support/sync-environment';

const make = (config: Record<string, unknown>) => createSync(rubikscube, rubikscube.config.parse(config));

test('texts are correct during the episode and at its end', () => {
  const environment = make({ scramble_depth: 0, max_steps: 3 });
  const { observation } = environment.reset({ seed: 0 }) as { observation: string };
  expect(observation).toBe(
    `=== Rubik's Cube 2x2 State ===
Step: 0/3

Up (U):    [W, W] [W, W]
Left (L):  [O, O] [O, O]
Front (F): [G, G] [G, G]
Right (R): [R, R] [R, R]
Back (B):  [B, B] [B, B]
Down (D):  [Y, Y] [Y, Y]

Available Actions:
U, U', D, D', L, L', R, R', F, F', B, B'

What is your next move?`,
  );
  expect(environment.step(1)).toMatchObject({ reward: 0, terminated: false, truncated: false });
  const solved = environment.step(2);
  expect(solved).toMatchObject({ reward: 1, terminated: true, truncated: false, info: { success: true } });
  expect(String(solved.observation).split('\n').slice(-2)).toEqual(['', '=== Game Over: Cube Solved! ===']);
  expect(environment.solve!()).toEqual([]);
  expect(environment.step(1)).toMatchObject({ observation: solved.observation, reward: 0, terminated: true });
});

test('max_steps truncates; an invalid action is not counted as a step', () => {
  const environment = make({ max_steps: 1 });
  const { observation } = environment.reset({ seed: 5 }) as { observation: string };
  for (const action of [0, 13, 'U', 1.5]) {
    const info = { action_is_effective: false, action_is_valid: false, success: false };
    expect(environment.step(action)).toEqual({ observation, reward: 0, terminated: false, truncated: false, info });
  }
  const last = environment.step(3);
  expect(last).toMatchObject({ reward: 0, terminated: false, truncated: true });
  expect(last.observation).toContain('=== Game Over: Max steps reached. ===');
  expect(environment.solve!()).toBeUndefined();
});

test.each([
  [{ scramble_depth: -1 }, 'scramble_depth'],
  [{ max_steps: 0 }, 'max_steps'],
  [{ depth: 1 }, ''],
])('the configuration %j is refused at its key', (config, path) => {
  expect(rubikscube.config.safeParse(config).error?.issues[0].path.join('.')).toBe(path);
});
