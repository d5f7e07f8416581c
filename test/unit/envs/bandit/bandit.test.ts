// The bandit: one prompt for the whole group, payouts by member, and the configured scores.
import { describe, expect, test } from 'vitest';
import { armPairs } from '../../../../envs/bandit/arms';
import bandit from '../../../../envs/bandit/index';
import { createSync, type SyncEnvironment } from '../../../support/sync-environment';

const make = (config: Record<string, unknown> = {}) => createSync(bandit, bandit.config.parse(config));
const observe = (environment: SyncEnvironment, seed: number, member: number) =>
  (environment.reset({ seed, member }) as { observation: string }).observation;
const pull = (environment: SyncEnvironment, action: string | number) => environment.step(action);
const high = (environment: SyncEnvironment) => (environment.solve!() as string[])[0];
const low = (name: string) => [...armPairs.train, ...armPairs.test].find(pair => pair[1] === name)![0];

test('all members of a group see one prompt, other seeds see other prompts', () => {
  const prompts = Array.from({ length: 200 }, (_, seed) => {
    const seen = [0, 1, 7].map(member => observe(make(), seed, member));
    expect(new Set(seen).size).toBe(1);
    return seen[0];
  });
  expect(new Set(prompts).size).toBe(24); // twelve pairs in two orders
});

test('payouts differ by member, follow their rate, and repeat for the same (seed, member)', () => {
  const play = (seed: number, member: number) => {
    const environment = make();
    environment.reset({ seed, member });
    return pull(environment, high(environment)).reward;
  };
  const rewards = Array.from({ length: 4000 }, (_, i) => play(10000 + (i >> 4), i & 15));
  expect(new Set(rewards)).toEqual(new Set([0, 1]));
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  expect(Math.abs(mean - 0.25)).toBeLessThan(0.03);
  expect(rewards).toEqual(Array.from({ length: 4000 }, (_, i) => play(10000 + (i >> 4), i & 15)));
});

test('the low arm pays its constant and is no success; names match in any case', () => {
  const environment = make();
  environment.reset({ seed: 3 });
  const name = low(high(environment));
  expect(pull(environment, ` ${name.toUpperCase()} `)).toEqual({
    observation: `${name}: 0.1 points`,
    reward: 0.1,
    terminated: true,
    truncated: false,
    info: { action_is_effective: true, action_is_valid: true, success: false },
  });
});

test('a pull of the high arm is a success even if it pays nothing, and prints floats as Python does', () => {
  const environment = make({ hi_arm_hiscore_prob: 0 });
  environment.reset({ seed: 3 });
  const name = high(environment);
  expect(pull(environment, name)).toMatchObject({
    observation: `${name}: 0.0 points`,
    reward: 0,
    info: { success: true },
  });
});

describe('an arm named by number', () => {
  test.each([1, 5])('counts from action_space_start %d', start => {
    const environment = make({ action_space_start: start });
    const prompt = observe(environment, 9, 0);
    const [, a, b] = /called (\w+) and (\w+)\./.exec(prompt)!;
    expect(pull(environment, start).observation).toContain(`${a}: `);
    environment.reset({ seed: 9 });
    expect(pull(environment, start + 1).observation).toContain(`${b}: `);
  });
});

test('each episode names its own two arms, and the numbers that pull them', () => {
  const environment = make({ action_space_start: 5 });
  const { observation, actions } = environment.reset({ seed: 9 }) as { observation: string; actions: object };
  const [, a, b] = /called (\w+) and (\w+)\./.exec(observation)!;
  expect(actions).toEqual({ 5: a, 6: b });
});

test('an action that names no arm changes nothing', () => {
  const environment = make();
  const prompt = observe(environment, 9, 0);
  for (const action of ['Dragon', '', 0, 3]) {
    const info = { action_is_effective: false, action_is_valid: false, success: false };
    expect(pull(environment, action)).toEqual({
      observation: prompt,
      reward: 0,
      terminated: false,
      truncated: false,
      info,
    });
  }
});

test('the split test has separate arms', () => {
  const environment = make({ split: 'test' });
  const names = new Set(Array.from({ length: 100 }, (_, seed) => (environment.reset({ seed }), high(environment))));
  expect(names).toEqual(new Set(armPairs.test.map(pair => pair[1])));
});
