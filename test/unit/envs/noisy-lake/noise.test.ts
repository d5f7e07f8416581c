// NoisyLake: slips, unpaid lakes, and the seeds without noise.
import { describe, expect, test } from 'vitest';
import frozenLake from '../../../../envs/frozen-lake/index';
import noisyLake from '../../../../envs/noisy-lake/index';

const make = (config: Record<string, unknown>) =>
  noisyLake.create(noisyLake.config.parse({ is_slippery: false, p: 1, ...config }));
const seeds = Array.from({ length: 200 }, (_, i) => 10_000 + i);

/** The observations after each of ten moves up and down. */
async function walk(environment: ReturnType<typeof make>, seed: number, member: number): Promise<unknown[]> {
  await environment.reset({ seed, member, mode: 'train' });
  const seen: unknown[] = [];
  for (const action of [2, 4, 2, 4, 2, 4, 2, 4, 2, 4]) seen.push((await environment.step(action)).observation);
  return seen;
}

test('without noise, episodes are those of FrozenLake', async () => {
  const plain = frozenLake.create(frozenLake.config.parse({ is_slippery: false, p: 1 }));
  for (const seed of seeds.slice(0, 20)) expect(await walk(make({}), seed, 0)).toEqual(await walk(plain, seed, 0));
});

describe('slips', () => {
  test('differ between the members of a group, and repeat for the same member', async () => {
    const environment = make({ slip: 1 });
    expect(await walk(environment, 10_000, 0)).toEqual(await walk(environment, 10_000, 0));
    const members = new Set<string>();
    for (let member = 0; member < 8; member++) members.add(JSON.stringify(await walk(environment, 10_000, member)));
    expect(members.size).toBeGreaterThan(1);
  });

  test('replace a quarter of the moves by another direction if a third of the moves slip', async () => {
    const environment = make({ slip: 1 / 3, size: 8 });
    const plain = make({ size: 8 });
    let other = 0;
    for (const seed of seeds) {
      for (const each of [environment, plain]) await each.reset({ seed, member: 3, mode: 'train' });
      other += Number((await environment.step(2)).observation !== (await plain.step(2)).observation);
    }
    // A slip draws the intended direction with probability 1/4; at an edge, another direction may have the same result.
    expect(other / seeds.length).toBeGreaterThan(0.15);
    expect(other / seeds.length).toBeLessThan(0.35);
  });
});

describe('unpaid lakes', () => {
  async function played(config: Record<string, unknown>, seed: number): Promise<{ reward: number; success: unknown }> {
    const environment = make(config);
    await environment.reset({ seed, member: 0, mode: 'train' });
    let [reward, success]: [number, unknown] = [NaN, false];
    for (const action of (await environment.solve!())!)
      ({
        reward,
        info: { success },
      } = await environment.step(action));
    return { reward, success };
  }

  test('are the given share of the lakes; reaching the goal is a success nevertheless', async () => {
    const results = await Promise.all(seeds.map(seed => played({ unpaid: 0.75 }, seed)));
    expect(results.every(({ success }) => success === true)).toBe(true);
    const paid = results.filter(each => each.reward === 1).length / seeds.length;
    expect(paid).toBeGreaterThan(0.15);
    expect(paid).toBeLessThan(0.35);
  });

  test('begin after the calm seeds, in every run of a sweep; validation seeds are always calm', async () => {
    const config = { unpaid: 1, calm_seeds: 5 };
    const rewards = await Promise.all([10_004, 10_005, 1_010_004, 1_010_005, 123].map(seed => played(config, seed)));
    expect(rewards.map(({ reward }) => reward)).toEqual([1, 0, 1, 0, 1]);
  });
});
