// Demonstrations of ragen-small, replayed in the environments of its presets over random seeds: the solver's actions
// lead where the thought says, a thought's computations are right, and an answer of a guess does not depend on the
// solver.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Action, EnvironmentDefinition, StepResult } from '../../../../envs/api/environment';
import bandit from '../../../../envs/bandit/index';
import countdown from '../../../../envs/countdown/index';
import { evaluate } from '../../../../envs/countdown/expression';
import frozenLake from '../../../../envs/frozen-lake/index';
import game2048 from '../../../../envs/game-2048/index';
import rubikscube from '../../../../envs/rubikscube/index';
import sokoban from '../../../../envs/sokoban/index';
import sudoku from '../../../../envs/sudoku/index';
import webshop from '../../../../envs/webshop/index';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import type { Demonstration } from '../../../../extension/trainer/sft/demonstrated-response';
import { cellsAfter } from '../../../../extension/trainer/sft/board-cells';
import { expressions } from '../../../../extension/trainer/sft/responses/countdown-response';
import { responses } from '../../../../extension/trainer/sft/responses/responses';
import { load } from '../../../unit/trainer/config/presets';

const { custom_envs } = load('small').config;
const definitions: Record<string, EnvironmentDefinition> = Object.fromEntries(
  [bandit, countdown, frozenLake, game2048, rubikscube, sokoban, sudoku, webshop].map(each => [each.name, each]),
);

/** An episode of a tag's environment in this process, with actions by name. */
async function open(tag: string, seed: number) {
  const { env_type, env_config } = custom_envs[tag];
  const definition = definitions[env_type];
  const config = definition.config.parse(env_config ?? {});
  const environment = definition.create(config);
  const started = await environment.reset({ seed });
  const declared = typeof definition.actions === 'function' ? definition.actions(config) : definition.actions;
  const names: Record<string, string> | undefined = started.actions ?? declared;
  let state = started.observation as string;
  return {
    state: () => `State:\n${state}\nYou have 9 actions left.`,
    plan: async () => ((await environment.solve?.()) ?? []).map(action => names?.[String(action)] ?? String(action)),
    step: async (name: string): Promise<StepResult> => {
      const id = Object.entries(names ?? {}).find(([, own]) => own === name)?.[0];
      const action: Action = id === undefined ? name : Number(id);
      const result = await environment.step(action);
      state = result.observation as string;
      return result;
    },
  };
}

type Episode = Awaited<ReturnType<typeof open>>;

async function respond(tag: string, episode: Episode, looks: boolean, seed: number): Promise<Demonstration> {
  const shown = responses[custom_envs[tag].env_type]({
    state: episode.state(),
    plan: await episode.plan(),
    looks,
    mostActions: 3,
    stream: new RandomStream(seed),
  });
  expect(shown).not.toBeNull();
  return shown!;
}

const eachSeed = (check: (seed: number) => Promise<void>, numRuns = 25): Promise<void> =>
  fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 }), check), { numRuns });

const player = (state: string): string => {
  const [cell] = [
    ...cellsAfter(state, 'Player'),
    ...cellsAfter(state, 'Player on goal'),
    ...cellsAfter(state, 'Player on target'),
  ];
  return `(${cell[0]}, ${cell[1]})`;
};

describe.each(['SmallFrozenLake', 'SmallFrozenLake4', 'SmallFrozenLake6', 'SmallSokoban'])('%s', tag => {
  test('each named move leads to the named cell, and the episode is solved', () =>
    eachSeed(async seed => {
      const episode = await open(tag, seed);
      let last: StepResult | undefined;
      for (let turn = 0; turn < 30 && !last?.terminated; turn++) {
        if ((await episode.plan()).length === 0) return; // a room without a solution
        const { thought, actions } = await respond(tag, episode, true, seed);
        const steps = [...thought.matchAll(/ (Left|Down|Right|Up) (\(\d, \d\))( hole| push)?\./g)];
        const taken = steps.filter(([, , , note]) => note !== ' hole');
        expect(taken.map(([, name]) => name)).toEqual(actions);
        for (const [, name, cell, note] of taken) {
          const boxes = () => /^Boxes.*$/m.exec(episode.state())?.[0];
          const before = boxes();
          last = await episode.step(name);
          expect(player(episode.state())).toBe(cell);
          expect(boxes() !== before).toBe(note === ' push');
        }
        for (const [, , cell] of steps.filter(([, , , note]) => note === ' hole'))
          expect(/^Holes: (.*)$/m.exec(episode.state())?.[1]).toContain(cell);
      }
      expect(last?.info.success).toBe(true);
    }));
});

test('on slippery ice, the facts name the cells of the state', () =>
  eachSeed(async seed => {
    const episode = await open('SmallSlipperyLake', seed);
    const { thought } = await respond('SmallSlipperyLake', episode, true, seed);
    expect(
      thought.startsWith(`me ${player(episode.state())}, goal ${/^Goal: (.*)$/m.exec(episode.state())![1]}, `),
    ).toBe(true);
  }));

test.each(['SmallBandit', 'SmallBanditTest'])('%s: the risky arm is the one that pays more', tag =>
  eachSeed(async seed => {
    const episode = await open(tag, seed);
    const { thought, actions } = await respond(tag, episode, true, seed);
    const [, steady, risky] = /^(\w+) steady, (\w+) risky\. risky pays\.$/.exec(thought)!;
    expect(actions).toEqual([risky]);
    expect(steady).not.toBe(risky);
    expect((await episode.step(risky)).info.success).toBe(true);
  }),
);

describe('SmallCountdown', () => {
  test('each computation is right, its verdict is right, and the answer is the last expression', () =>
    eachSeed(async seed => {
      const episode = await open('SmallCountdown', seed);
      const target = Number(/Target: (\d+)/.exec(episode.state())![1]);
      const { thought, actions } = await respond('SmallCountdown', episode, true, seed);
      const tries = [...thought.matchAll(/([^.]+) (yes|no)\./g)].map(([, forms, verdict]) => ({
        forms: forms.trim().split(' = '),
        verdict,
      }));
      for (const { forms, verdict } of tries) {
        for (const form of forms) expect(Number(evaluate(form))).toBe(Number(forms.at(-1)));
        expect(verdict).toBe(Number(forms.at(-1)) === target ? 'yes' : 'no');
      }
      expect(actions).toEqual([tries.at(-1)!.forms[0]]);
      expect((await episode.step(actions[0])).info.success).toBe(tries.at(-1)!.verdict === 'yes');
    }, 100));

  test('the expressions use every number once and include a solution', () =>
    eachSeed(async seed => {
      const episode = await open('SmallCountdown', seed);
      const [, target, list] = /Target: (\d+), nums: \[(.*)\]/.exec(episode.state())!;
      const numbers = list.split(', ').map(Number);
      const all = expressions(numbers);
      for (const each of all) expect(each.map(Math.abs).sort()).toEqual([...numbers].sort());
      expect(all.some(each => each.reduce((a, b) => a + b) === Number(target))).toBe(true);
    }));
});

test('SmallSudoku: every named placement is allowed, and single candidates are listed as such', () =>
  eachSeed(async seed => {
    const episode = await open('SmallSudoku', seed);
    for (let turn = 0; turn < 6; turn++) {
      const state = episode.state();
      const { thought, actions } = await respond('SmallSudoku', episode, true, seed);
      const placed = [...thought.matchAll(/(\(\d,\d\)) (\d)/g)];
      expect(actions).toEqual(placed.map(([, cell, number]) => `place ${number} at ${cell}`));
      for (const [, cell, number] of placed) {
        if (thought.includes(' only ')) expect(state).toContain(`  - ${cell}: [${number}]\n`);
        const { info, terminated } = await episode.step(`place ${number} at ${cell}`);
        expect(info.action_is_valid).toBe(true);
        if (terminated) return;
      }
    }
  }));

test('Small2048: the named sums are those that the moves merge', () =>
  eachSeed(async seed => {
    for (const name of ['Up', 'Right', 'Down', 'Left']) {
      const episode = await open('Small2048', seed);
      for (let i = 0; i < 4; i++) await episode.step(['Left', 'Down', 'Left', 'Up'][i]);
      const { thought, actions } = await respond('Small2048', episode, true, seed);
      const sum = new RegExp(`${name} (no|\\d+)`).exec(thought)![1];
      const { info } = await episode.step(name);
      expect(sum).toBe(info.action_is_valid ? String(info.raw_reward) : 'no');
      expect(thought).toContain(` take ${actions.join(', ')}.`);
    }
  }));

test.each(['SmallCube1', 'SmallCube', 'SmallCube3'])('%s: the named turns solve the cube, and not fewer', tag =>
  eachSeed(async seed => {
    const episode = await open(tag, seed);
    const { thought, actions } = await respond(tag, episode, true, seed);
    const [, count, list] = /^\d faces done\. (\d) off: (.*)\.$/.exec(thought)!;
    expect(list.split(', ')).toEqual(actions);
    expect(actions).toHaveLength(Number(count));
    for (const [i, action] of actions.entries())
      expect((await episode.step(action)).info.success).toBe(i === actions.length - 1);
  }),
);

describe('SmallShop', () => {
  test('looking buys what the wish names, by actions that the page lists', () =>
    eachSeed(async seed => {
      const episode = await open('SmallShop', seed);
      const wish = /Find me (.*?)(?: with |, and price|\.)/.exec(episode.state())![1];
      let last: StepResult | undefined;
      for (let turn = 0; turn < 4 && !last?.terminated; turn++) {
        const { thought, actions } = await respond('SmallShop', episode, true, seed);
        expect(thought.startsWith(`want ${wish}`)).toBe(true);
        for (const action of actions) {
          last = await episode.step(action);
          expect(last.info.action_is_valid).toBe(true);
        }
      }
      expect(last?.info.success).toBe(true);
    }));

  test('looking leaves a product that was opened by a guess', () =>
    eachSeed(async seed => {
      const episode = await open('SmallShop', seed);
      let last: StepResult | undefined;
      for (const action of (await respond('SmallShop', episode, true, seed)).actions) last = await episode.step(action);
      for (const action of (await respond('SmallShop', episode, false, seed)).actions)
        last = await episode.step(action);
      for (let turn = 0; turn < 5 && !last?.terminated; turn++)
        for (const action of (await respond('SmallShop', episode, true, seed)).actions)
          last = await episode.step(action);
      expect(last?.info.success).toBe(true);
    }));
});

test.each(Object.keys(custom_envs).filter(tag => /^Small(?!Countdown)/.test(tag)))(
  '%s: a guess names the facts of the state and takes 1 to 3 actions that do not depend on the plan',
  tag =>
    eachSeed(async seed => {
      const episode = await open(tag, seed);
      const [shown, again] = [await respond(tag, episode, false, seed), await respond(tag, episode, false, seed)];
      expect(again).toEqual(shown);
      expect(shown.thought).toMatch(/(?:guess|steady is safe)\.$/);
      expect(shown.actions.length).toBeGreaterThanOrEqual(1);
      expect(shown.actions.length).toBeLessThanOrEqual(3);
      const facts = (await respond(tag, episode, true, seed)).thought;
      expect(facts.startsWith(shown.thought.replace(/ (?:guess|steady is safe)\.$/, ''))).toBe(true);
    }),
);
