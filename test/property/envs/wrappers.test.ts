// The environment contract holds for any stack of wrappers in any order around any environment.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import type { Action, Environment, EnvironmentDefinition, StepResult } from '../../../envs/api/environment';
import { withActionMask } from '../../../envs/api/wrappers/action-mask';
import { withFrameHistory } from '../../../envs/api/wrappers/frame-history';
import { withObservation } from '../../../envs/api/wrappers/observation';
import { withRecord } from '../../../envs/api/wrappers/record';
import { withRewardShaping } from '../../../envs/api/wrappers/reward-shaping';
import { withTimeLimit } from '../../../envs/api/wrappers/time-limit';
import { imagesOf, textOf } from '../../../envs/api/wrappers/wrap';
import bandit from '../../../envs/bandit/index';
import frozenLake from '../../../envs/frozen-lake/index';
import game2048 from '../../../envs/game-2048/index';
import sokoban from '../../../envs/sokoban/index';

type Definition = EnvironmentDefinition<z.ZodType>;
type Wrapper = (definition: Definition) => Definition;
const anyOf = (definition: unknown) => definition as Definition;

/** Wrappers by name, with random arguments. */
const wrappers: fc.Arbitrary<{ name: string; wrapper: Wrapper }> = fc.oneof(
  fc.integer({ min: 1, max: 30 }).map(maxSteps => ({
    name: `limit ${maxSteps}`,
    wrapper: (inner: Definition) => withTimeLimit(inner, { maxSteps }),
  })),
  fc.double({ min: -2, max: 2, noNaN: true }).map(factor => ({
    name: `shaping ${factor}`,
    wrapper: (inner: Definition) =>
      withRewardShaping(
        inner,
        ({ reward, previous, observation, steps }) =>
          reward * factor + (textOf(previous) === textOf(observation) ? -1 : 0) - 0.01 * steps,
      ),
  })),
  fc.constantFrom('render', 'text').map(how => ({
    name: `observation ${how}`,
    wrapper: (inner: Definition) =>
      withObservation(inner, (observation, { render, steps }) =>
        how === 'render' ? render('grid') : { text: `${steps}: ${textOf(observation)}`, images: imagesOf(observation) },
      ),
  })),
  fc.integer({ min: 1, max: 4 }).map(frames => ({
    name: `history ${frames}`,
    wrapper: (inner: Definition) => withFrameHistory(inner, { frames }),
  })),
  fc.record({ modulus: fc.integer({ min: 2, max: 5 }), tell: fc.boolean() }).map(({ modulus, tell }) => ({
    name: `mask ${modulus} ${tell}`,
    wrapper: (inner: Definition) =>
      withActionMask(inner, (action, { steps }) => (Number(action) + steps) % modulus !== 0, { penalty: -0.5, tell }),
  })),
  fc.constant({ name: 'record', wrapper: (inner: Definition) => withRecord(inner) }),
);
const stacks = fc.array(wrappers, { maxLength: 6 });

/** Makes the inner environment answer asynchronously, like an environment that calls a server. */
const slowly = (definition: Definition): Definition => ({
  ...definition,
  create(config) {
    const inner = definition.create(config);
    return {
      reset: async options => inner.reset(options),
      step: async action => inner.step(action),
      render: async mode => inner.render!(mode),
      ...(inner.solve && { solve: async () => inner.solve!() }),
    };
  },
});

const games = fc.constantFrom<{ definition: Definition; config: object }>(
  { definition: anyOf(sokoban), config: { num_boxes: 1, search_depth: 30 } },
  { definition: anyOf(sokoban), config: { num_boxes: 1, search_depth: 30, render_mode: 'rgb_array', max_steps: 5 } },
  { definition: anyOf(frozenLake), config: { p: 0.8 } },
  { definition: anyOf(bandit), config: {} },
  { definition: anyOf(game2048), config: {} },
);
const actions = fc.array(fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 0, max: 4 }) }, fc.string()), {
  maxLength: 25,
});
const seeds = fc.nat({ max: 0xffffffff });

const stacked = (definition: Definition, stack: readonly { wrapper: Wrapper }[]) =>
  stack.reduce((inner, { wrapper }) => wrapper(inner), definition);
const made = (definition: Definition, config: object): Environment =>
  definition.create(definition.config.parse(config));

/** All outputs of an episode until its end; images as bytes. */
async function transcript(environment: Environment, seed: number, taken: readonly Action[]): Promise<string[]> {
  const line = (value: unknown) =>
    JSON.stringify(value, (_, held: unknown) =>
      held instanceof Uint8Array ? Buffer.from(held).toString('hex') : held,
    );
  const lines = [line(await environment.reset({ seed, member: 3 }))];
  for (const action of taken) {
    const result = await environment.step(action);
    expect(Number.isFinite(result.reward)).toBe(true);
    expect([typeof result.terminated, typeof result.truncated]).toEqual(['boolean', 'boolean']);
    expect((textOf(result.observation).match(/<image>/g) ?? []).length).toBe(imagesOf(result.observation).length);
    lines.push(line(result));
    if (result.terminated || result.truncated) break;
  }
  return lines;
}

describe('any stack of wrappers', () => {
  test('gives the same episode for the same seed and actions: fresh, after a reset, and around slow environments', async () => {
    await fc.assert(
      fc.asyncProperty(games, stacks, seeds, actions, async ({ definition, config }, stack, seed, taken) => {
        const used = made(stacked(definition, stack), config);
        const first = await transcript(used, seed, taken);
        expect(await transcript(used, seed, taken)).toEqual(first);
        expect(await transcript(made(stacked(definition, stack), config), seed, taken)).toEqual(first);
        expect(await transcript(made(stacked(slowly(definition), stack), config), seed, taken)).toEqual(first);
        await used.close?.();
      }),
      { numRuns: 60 },
    );
  });

  test('answers synchronously when the inner environment does', () => {
    fc.assert(
      fc.property(games, stacks, seeds, ({ definition, config }, stack, seed) => {
        const environment = made(stacked(definition, stack), config);
        expect(environment.reset({ seed })).not.toBeInstanceOf(Promise);
        expect(environment.step(1)).not.toBeInstanceOf(Promise);
      }),
      { numRuns: 40 },
    );
  });

  test('does not change name, configuration, actions, render or the presence of a solver', () => {
    fc.assert(
      fc.property(games, stacks, ({ definition, config }, stack) => {
        const wrapped = stacked(definition, stack);
        expect([wrapped.name, wrapped.config, wrapped.actions]).toEqual([
          definition.name,
          definition.config,
          definition.actions,
        ]);
        const [inner, outer] = [made(definition, config), made(wrapped, config)];
        expect(Object.keys(inner).filter(key => !(key in outer))).toEqual([]);
        expect('solve' in outer).toBe('solve' in inner);
      }),
    );
  });

  test("lets the solver's actions replay to success, up to a time limit", async () => {
    let solved = 0;
    await fc.assert(
      fc.asyncProperty(stacks, seeds, async (stack, seed) => {
        const environment = made(stacked(anyOf(sokoban), stack), { num_boxes: 1, search_depth: 30 });
        await environment.reset({ seed });
        const solution = await environment.solve!();
        const masked = stack.some(({ name }) => name.startsWith('mask'));
        if (!solution) {
          expect(masked).toBe(true);
          return;
        }
        let last: StepResult | undefined;
        for (const action of solution) {
          last = await environment.step(action);
          if (last.truncated) return;
        }
        expect(last).toMatchObject({ terminated: true, info: { success: true } });
        solved++;
      }),
      { numRuns: 60 },
    );
    expect(solved).toBeGreaterThan(10);
  });

  test('refuses a step between the end of an episode and the next reset, whatever ended the episode', async () => {
    const ends = { terminated: 0, truncated: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(wrappers, { minLength: 1, maxLength: 6 }), seeds, async (stack, seed) => {
        const environment = made(stacked(anyOf(frozenLake), stack), { p: 0.6 });
        await environment.reset({ seed });
        for (let i = 0; i < 60; i++) {
          const { terminated, truncated } = await environment.step([2, 3, 2, 3, 1, 4][(seed + i) % 6]);
          if (!terminated && !truncated) continue;
          ends[terminated ? 'terminated' : 'truncated']++;
          for (const action of [1, 2, 3, 4])
            await expect((async () => environment.step(action))()).rejects.toThrow('the episode is over');
          await environment.reset({ seed });
          await environment.step(1);
          return;
        }
      }),
      { numRuns: 100 },
    );
    expect(Math.min(ends.terminated, ends.truncated)).toBeGreaterThan(2);
  });
});
