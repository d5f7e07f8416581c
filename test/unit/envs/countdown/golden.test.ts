// Problems, rewards and values of expressions equal RAGEN's procedure with Python's `eval`
// (test/golden/make/envs_countdown.py).
import { expect, test } from 'vitest';
import golden from '../../../golden/envs/countdown.json';
import type { StepResult } from '../../../../envs/api/environment';
import { evaluate } from '../../../../envs/countdown/expression';
import countdown from '../../../../envs/countdown/index';

const config = countdown.config.parse({});

test.each(golden.episodes as [number, string, string, number][])(
  'seed %i plays as recorded',
  async (seed, observation, answer, reward) => {
    const environment = countdown.create(config);
    expect(await environment.reset({ seed })).toEqual({ observation });
    const step = environment.step(answer) as StepResult;
    expect([answer, step.reward]).toEqual([answer, reward]);
    expect(step).toMatchObject({
      observation: `Your answer get ${reward} points.`,
      terminated: true,
      info: { action_is_effective: reward > 0, action_is_valid: true, success: reward === 1 },
    });
  },
);

/** In the golden data, integers are strings and floats are numbers. */
test.each(golden.values as [string, string | number | null][])(
  'the expression %j has the value that Python gives it',
  (text, value) => {
    const found = evaluate(text);
    if (value === null) expect(found).toBeUndefined();
    else if (typeof value === 'string') expect(found).toBe(BigInt(value));
    else {
      expect(typeof found).toBe('number');
      expect(Math.abs((found as number) - value)).toBeLessThanOrEqual(1e-12 * Math.abs(value));
    }
  },
);

test.each([
  ['usual', 1200, 200],
  ['small', 2100, 300],
] as const)('validation has %s problems that never occur in training', async (problems, trained, validated) => {
  const environment = countdown.create(countdown.config.parse({ problems }));
  const texts = async (mode: 'train' | 'val', count: number) => {
    const seen = new Set<unknown>();
    for (let seed = 0; seed < count; seed++) seen.add((await environment.reset({ seed, mode })).observation);
    return seen;
  };
  const [train, val] = [await texts('train', trained + 100), await texts('val', validated + 100)];
  expect([train.size, val.size]).toEqual([trained, validated]);
  expect([...val].some(text => train.has(text))).toBe(false);
});
