// ALFWorld as in RAGEN, against a tiny house that speaks like an ALFWorld server: observations, rewards, splits, flags
// and the memory.
import { afterEach, describe, expect, it } from 'vitest';
import alfworld from '../../../../envs/alfworld/index';
import { memoryRequest } from '../../../../extension/trainer/rollout/memory-message';
import { builtInMemories } from '../../../../extension/trainer/rollout/memories';
import { asked as turn, past } from '../../trainer/rollout/scripted-rollout';
import { tinyHouse } from './tiny-house';

let house: Awaited<ReturnType<typeof tinyHouse>>;
afterEach(() => house.stop());

const made = (config = {}) =>
  alfworld.create(alfworld.config.parse({ url: house.url, protocol: 'gym_service', backoff: 0.01, ...config }));
const solution = ['go to countertop 1', 'take mug 1 from countertop 1', 'go to cabinet 1', 'move mug 1 to cabinet 1'];

describe('an episode', () => {
  it('shows its admissible actions, and pays the score when won', async () => {
    house = await tinyHouse();
    const environment = made();
    const { observation } = await environment.reset({ seed: 4, mode: 'train' });
    expect(observation).toBe(
      '-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a cabinet 1, a countertop 1, a sinkbasin 1.' +
        '\n\nYour task is to: put a mug in cabinet.\n\nAdmissible actions: [go to cabinet 1, go to countertop 1, go to sinkbasin 1, inventory, look]',
    );
    const steps = [];
    for (const action of solution) steps.push(await environment.step(action));
    expect(steps.map(({ reward }) => reward)).toEqual([0, 0, 0, 10]);
    expect(steps[0].observation).toMatch(
      /^You arrive at countertop 1\. On the countertop 1, you see a mug 1\.\n\nAdmissible actions: \[go to cabinet 1, /,
    );
    expect(steps[2]).toMatchObject({ terminated: false, truncated: false, info: { success: false } });
    expect(steps[3]).toMatchObject({ terminated: true, truncated: false });
    expect(steps[3].info).toEqual({ action_is_effective: true, action_is_valid: true, success: true });
    await environment.close!();
    await expect.poll(() => house.open()).toBe(0);
  });

  it('continues after an impossible action, which is marked invalid', async () => {
    house = await tinyHouse();
    const environment = made({ score: 3 });
    await environment.reset({ seed: 0 });
    const step = await environment.step('fly to the moon');
    expect(step).toMatchObject({
      reward: 0,
      terminated: false,
      info: { action_is_valid: false, action_is_effective: true },
    });
    expect(step.observation).toMatch(/^Nothing happens\./);
    for (const action of solution.slice(0, 3)) await environment.step(action);
    expect((await environment.step(solution[3])).reward).toBe(3);
    await environment.close!();
  });

  it('is from the split that the mode selects', async () => {
    house = await tinyHouse();
    const environment = made({ eval_dataset: 'eval_out_of_distribution', config_file: 'alfworld.yaml' });
    await environment.reset({ seed: 1, mode: 'train' });
    expect(environment.render!('')).toContain('put a mug in countertop');
    await environment.reset({ seed: 1, mode: 'val' });
    expect(environment.render!('')).toContain('put a mug in sinkbasin');
    expect(house.asked).toEqual([
      { train_eval: 'train', config_file: 'alfworld.yaml' },
      { train_eval: 'eval_out_of_distribution', config_file: 'alfworld.yaml' },
    ]);
    await environment.close!();
    expect(alfworld.config.parse({}).eval_dataset).toBe('eval_in_distribution');
  });

  it('ends at the server’s limit or the configured one', async () => {
    house = await tinyHouse({ cap: 2 });
    const environment = made();
    await environment.reset({ seed: 0 });
    await environment.step('look');
    expect(await environment.step('look')).toMatchObject({ terminated: false, truncated: true, reward: 0 });
    await environment.close!();
    const short = made({ max_steps: 1 });
    await short.reset({ seed: 0 });
    expect(await short.step('look')).toMatchObject({ terminated: false, truncated: true });
    await short.close!();
  });

  it('counts as won by the server’s reward when the info has no `won`', async () => {
    house = await tinyHouse({ infoChanges: { won: undefined } });
    const environment = made();
    await environment.reset({ seed: 0 });
    for (const action of solution.slice(0, 3)) await environment.step(action);
    expect(await environment.step(solution[3])).toMatchObject({
      reward: 10,
      terminated: true,
      info: { success: true },
    });
    await environment.close!();
  });

  it('reports an unreachable server', async () => {
    house = await tinyHouse();
    house.stop();
    await expect(
      Promise.resolve(alfworld.dependencies!(alfworld.config.parse({ url: house.url }))),
    ).rejects.toMatchObject({
      message: expect.stringMatching(/^cannot reach a server at http:\/\/127\.0\.0\.1:\d+ \(/),
      remedy: expect.stringContaining('docs/environments/alfworld.md'),
    });
  });
});

it('the memory contains task, observation and admissible actions', async () => {
  house = await tinyHouse();
  const environment = made();
  await environment.reset({ seed: 0 });
  const first = environment.render!('') as string;
  await environment.step(solution[0]);
  const now = environment.render!('') as string;
  const before = { ...past(1, `<think>t</think><answer>${solution[0]}</answer>`, 0), state: first };
  const request = memoryRequest({ prompts: [turn(1, first), turn(2, now)], history: [before] }, 0, 'alfworld', {
    enable_think: true,
    action_sep: '||',
    max_actions_per_turn: 1,
  });
  const { message: text } = builtInMemories.alfworld.remember(request) as { message: string };
  expect(text).toContain('Your task is to: put a mug in cabinet.\nYou have taken 1 step(s) so far.');
  expect(text).toContain(
    "[Observation 1: 'You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a countertop 1, a sinkbasin 1.', Action 1: 'go to countertop 1']",
  );
  expect(text).toContain(
    'Your current observation is: You arrive at countertop 1. On the countertop 1, you see a mug 1.\n',
  );
  expect(text).toContain(
    'Your admissible actions now are: [go to cabinet 1, go to sinkbasin 1, take mug 1 from countertop 1, inventory, look].',
  );
  await environment.close!();
});
