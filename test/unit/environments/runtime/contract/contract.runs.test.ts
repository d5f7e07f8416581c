// Contract checks: the built-in environments pass. An environment that violates one requirement fails only that
// requirement, and the report names the location.
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Environment, EnvironmentDefinition, ResetOptions } from '../../../../../envs/api/environment';
import type { ComponentValues } from '../../../../../envs/api/rewards';
import { isolationMissing } from '../../../envs/deepcoder/isolation';
import { checkContract, type ContractResult } from '../../../../../extension/environments/runtime/contract/contract';
import bandit from '../../../../../envs/bandit/index';
import deepcoder from '../../../../../envs/deepcoder/index';
import countdown from '../../../../../envs/countdown/index';
import frozenLake from '../../../../../envs/frozen-lake/index';
import game2048 from '../../../../../envs/game-2048/index';
import metamathqa from '../../../../../envs/metamathqa/index';
import nim from '../../../../../envs/nim/index';
import rubikscube from '../../../../../envs/rubikscube/index';
import search from '../../../../../envs/search/index';
import sokoban from '../../../../../envs/sokoban/index';
import staticQuestions from '../../../../../envs/static/index';
import sudoku from '../../../../../envs/sudoku/index';
import webshop from '../../../../../envs/webshop/index';
import { reinterpret } from '../../../../support/partial';

const options = { seeds: 4, steps: 40, budgetMs: 5000, announce: () => undefined };

async function failuresOf(definition: EnvironmentDefinition, given: Record<string, unknown> = {}): Promise<string[]> {
  const config = definition.config.parse(given) as Record<string, unknown>;
  const results = await checkContract(definition, config, options);
  return results.filter(({ state }) => state === 'failed').map(({ name, evidence }) => `${name}: ${evidence}`);
}

describe('the built-in environments', () => {
  test.each([
    [bandit, {}],
    [countdown, {}],
    [frozenLake, {}],
    [frozenLake, { is_slippery: false, observation_format: 'coord' }],
    [game2048, {}],
    [metamathqa, {}],
    [nim, {}],
    [rubikscube, { scramble_depth: 3 }],
    [search, {}],
    [sokoban, { dim_room: [6, 6], num_boxes: 1 }],
    [sokoban, { dim_room: [6, 6], num_boxes: 1, max_steps: 5 }],
    [staticQuestions, {}],
    [sudoku, {}],
    [webshop, {}],
  ] as [EnvironmentDefinition, Record<string, unknown>][])('$name meets the contract', async (definition, config) => {
    expect(await failuresOf(definition, config)).toEqual([]);
  });
});

test.each(['perfect', 'random'])('nim against the %s opponent meets the contract', async opponent => {
  // games are short and many moves illegal, so each move has an effect only in many games
  const results = await checkContract(nim, nim.config.parse({ opponent }), { ...options, seeds: 40 });
  expect(results.filter(({ state }) => state === 'failed')).toEqual([]);
});

test('deepcoder meets the contract if programs can run in isolation', async ({ skip }) => {
  const missing = await isolationMissing();
  if (missing) skip(missing);
  const config = deepcoder.config.parse({}) as Record<string, unknown>;
  const results = await checkContract(deepcoder, config, { ...options, seeds: 2, steps: 2 });
  expect(results.filter(({ state }) => state === 'failed')).toEqual([]);
});

/** Walks from 0 to 3 along a line; the seed determines the start. `change` introduces a fault. */
function line(change: Partial<Environment> | ((environment: Environment) => Partial<Environment>) = {}) {
  const definition: EnvironmentDefinition = {
    name: 'line',
    config: z.object({}),
    actions: { 1: 'Left', 2: 'Right' },
    components: { place: 0.1, solved: 1 },
    stateForms: { structured: 'a JSON object', symbolic: 'a number' },
    instruction: 'Walk to 3.',
    create() {
      let at = 0;
      const over = () => at === 3;
      const environment: Environment = {
        reset({ seed }: ResetOptions) {
          at = seed % 3;
          return { observation: `at ${at}` };
        },
        step(action) {
          if (over()) throw new Error('the episode is over');
          at = Math.max(0, at + (action === 2 ? 1 : -1));
          const info = { success: over() };
          return { observation: `at ${at}`, reward: over() ? 1 : 0, terminated: over(), truncated: false, info };
        },
        render: () => `line ${at}`,
        solve: () => Array.from({ length: 3 - at }, () => 2),
        score: ({ thought }): ComponentValues => (thought === null ? {} : { place: at / 3 }),
        state: form => (form === 'structured' ? JSON.stringify({ at }) : String(at)),
        scoreEpisode: ({ success }) => ({ solved: Number(success) }),
        close: () => undefined,
      };
      return { ...environment, ...(typeof change === 'function' ? change(environment) : change) };
    },
  };
  return definition;
}

/** The environment's step with part of its result replaced. */
const returning = (part: (result: Record<string, unknown>) => object) => (environment: Environment) => ({
  step(action: number | string) {
    const result = reinterpret<Record<string, unknown>>(environment.step(action));
    return { ...result, ...part(result) } as never;
  },
});

test('an environment without faults passes every requirement', async () => {
  const results = await checkContract(line(), {}, options);
  expect(results.filter(({ state }) => state !== 'passed')).toEqual([]);
  expect(results.map(({ name }) => name)).toHaveLength(18);
  const { evidence } = results.find(({ name }) => name.startsWith('score functions'))!;
  expect(results.find(({ name }) => name.startsWith('state '))!.evidence).toMatch(
    /^\d+ states in the 2 forms structured, symbolic\.$/,
  );
  expect(evidence).toMatch(/^\d+ turns and 4 episodes scored: place 0 to 1, solved 1 to 1\.$/);
});

describe('an environment that violates a requirement', () => {
  let drawn = 0;
  let shared = 0;
  const scores = 'score functions return numbers and do not change the state';
  const states = 'state describes the state and does not change it';
  const cases: [string, EnvironmentDefinition, RegExp][] = [
    [states, line({ state: () => 7 as never }), /returned 7 from state at seed 1 before any action: return a text/],
    [states, line({ state: undefined as never }), /declares stateForms, but has no method state/],
    [states, line({ state: () => `${drawn++}` }), /state\(structured\) returns "\d+", then "\d+" at seed 1/],
    [
      states,
      line(environment => ({ state: () => (void environment.reset({ seed: 2, mode: 'train' }), 'at') })),
      /An episode differs when its true state is asked for/,
    ],
    [scores, line({ score: () => ({ place: NaN }) }), /returned NaN as the reward component place at seed 1 after \[/],
    [scores, line({ scoreEpisode: () => ({ fame: 1 }) }), /the reward component "fame", which it does not declare/],
    [
      scores,
      line({ score: ({ answer }) => ({ place: answer!.length }) }),
      /score throws "Cannot read properties of null/,
    ],
    [
      scores,
      line({ score: () => ({ place: drawn++ }) }),
      /score returns {"place":\d+}, then {"place":\d+} for the same/,
    ],
    [
      scores,
      line(environment => ({ score: () => (void environment.reset({ seed: 2, mode: 'train' }), { place: 0 }) })),
      /An episode differs when its turns are scored/,
    ],
    [
      'rewards are finite numbers',
      line(returning(() => ({ reward: NaN }))),
      /step\((Left|Right)\) gives the reward NaN at seed 1 before any action/,
    ],
    ['observations are text', line(returning(() => ({ observation: 7 }))), /returns the observation 7/],
    [
      'observations are text',
      line(returning(() => ({ observation: { text: 'x', images: [new Uint8Array(4)] } }))),
      /not PNG data/,
    ],
    ['terminated and truncated', line(returning(() => ({ truncated: undefined }))), /returns truncated missing/],
    ['info is plain data', line(returning(() => ({ info: { f: () => 1 } }))), /f is a function/],
    [
      'every call returns',
      line({
        step: () => {
          throw new Error('broken');
        },
      }),
      /throws "broken" at seed 1/,
    ],
    [
      'the same seed and actions',
      line(returning(({ observation }) => ({ observation: `${String(observation)} ${drawn++}` }))),
      /A second instance differs/,
    ],
    [
      'members of a group',
      line(({ reset }) => ({ reset: ({ seed, member = 0 }) => reset({ seed: seed + member }) })),
      /Member 1/,
    ],
    [
      'concurrent episodes',
      line(environment => ({
        reset: given => ((shared = 0), environment.reset(given)),
        ...returning(({ observation }) => ({ observation: `${String(observation)} ${shared++}` }))(environment),
      })),
      /when other episodes are played between/,
    ],
    [
      'reset starts a new episode',
      line(environment => {
        let resets = 0;
        return { reset: given => (resets++ === 0 ? environment.reset(given) : { observation: 'used' }) };
      }),
      /starts a different episode at seed 1/,
    ],
    [
      'a step after the end',
      line(environment => {
        let over = false;
        return {
          reset: given => ((over = false), environment.reset(given)),
          step(action) {
            if (over) return { observation: 'at 3', reward: 1, terminated: true, truncated: false, info: {} };
            const result = environment.step(action) as never as { terminated: boolean };
            over = result.terminated;
            return result as never;
          },
        };
      }),
      /gives the reward 1/,
    ],
    ['every action has an effect', { ...line(), actions: { 1: 'Left', 2: 'Right', 3: 'Wait' } }, /never/],
    [
      'render shows the state',
      line(() => {
        let n = 0;
        return { render: () => `frame ${n++}` };
      }),
      /renders differently/,
    ],
    ['solve solves', line({ solve: () => [1] }), /solves 0 of 4 seeds/],
    [
      'close ends',
      line({
        close: () => {
          throw new Error('twice');
        },
      }),
      /throws "twice" before any reset/,
    ],
  ];
  test.each(cases)('fails only this requirement: %s', async (requirement, definition, evidence) => {
    if (requirement === 'every action has an effect') definition.create = idle(definition.create);
    const config = definition.config.parse({}) as Record<string, unknown>;
    const failed = (await checkContract(definition, config, options)).filter(({ state }) => state === 'failed');
    const found = failed.find(({ name }) => name.startsWith(requirement)) as ContractResult;
    expect(failed.map(({ name }) => name)).toEqual([expect.stringContaining(requirement)]);
    expect(found.evidence).toMatch(evidence);
  });
});

/** Makes action 3 have no effect. */
const idle =
  (create: EnvironmentDefinition['create']): EnvironmentDefinition['create'] =>
  config => {
    const environment = create(config);
    let newest = '';
    return {
      ...environment,
      reset(given) {
        const begun = environment.reset(given) as { observation: string };
        newest = begun.observation;
        return begun;
      },
      step(action) {
        if (action === 3) return { observation: newest, reward: 0, terminated: false, truncated: false, info: {} };
        const result = environment.step(action) as never as { observation: string };
        newest = result.observation;
        return result as never;
      },
    };
  };
