// Which components a tag has, their weights, and the sentences for components that do not fit the code.
import { describe, expect, it } from 'vitest';
import { rewards, type RewardSettings } from '../../../../extension/trainer/config/schema-rewards';
import { requireComponents, withComponentCheck } from '../../../../extension/trainer/rewards/component-check';
import { componentProblem, rewardPlan, weightedSum } from '../../../../extension/trainer/rewards/reward-plan';
import { corridor } from '../rollout/scripted-rollout';

const settings = (given: object): RewardSettings => rewards.parse(given);
const scored = { ...corridor, components: { brevity: 0.5, tone: 0 }, scores: { turn: true, episode: false } };

describe('the plan of a tag', () => {
  it('does not exist without components', () => {
    expect(rewardPlan(corridor, undefined)).toBeUndefined();
    expect(rewardPlan(corridor, null)).toBeUndefined();
    expect(rewardPlan(corridor, settings({ grounding: null }))).toBeUndefined();
  });

  it('has the weights of the code, those of the configuration, and the built-in components that are on', () => {
    expect([...rewardPlan(scored, undefined)!.weights]).toEqual([
      ['brevity', 0.5],
      ['tone', 0],
    ]);
    const given = settings({ weights: { tone: -1 }, repetition: { weight: -0.5 }, thought_length: { weight: 2 } });
    const plan = rewardPlan(scored, given)!;
    expect(Object.fromEntries(plan.weights)).toEqual({ brevity: 0.5, tone: -1, thought_length: 2, repetition: -0.5 });
    expect(plan.builtIn({ format_right: false, state: '', thought: 'go up go up go up go up' })).toEqual({
      thought_length: 0.8,
      repetition: 1 - 2 / 6,
    });
    expect(weightedSum(plan, { brevity: 2, tone: 3, thought_length: 1, repetition: 0.5 })).toBe(1 - 3 + 2 - 0.25);
  });

  it('leaves out the grounding in a state that has no terms', () => {
    const plan = rewardPlan(corridor, settings({ grounding: { weight: 1 } }))!;
    expect(plan.builtIn({ format_right: false, state: '#_P', thought: 'a wall' })).toEqual({});
    expect(plan.builtIn({ format_right: false, state: 'a wall', thought: 'a wall' })).toEqual({ grounding: 1 });
  });
});

describe('components that do not fit the code', () => {
  it.each([
    [
      { weights: { brevty: 1 } },
      'config: custom_envs.Corridor.rewards.weights.brevty is the weight of a component that /envs/corridor/index.ts does not declare: did you mean brevity?',
    ],
    [
      { weights: { politeness: 1 } },
      'config: custom_envs.Corridor.rewards.weights.politeness is the weight of a component that /envs/corridor/index.ts does not declare: use one of brevity, tone',
    ],
    [
      { weights: { grounding: 1 } },
      'config: custom_envs.Corridor.rewards.weights.grounding is the weight of a component that /envs/corridor/index.ts does not declare: set the weight of this built-in component with rewards.grounding.weight',
    ],
  ])('%o', (given, sentence) => {
    expect(componentProblem(scored, settings(given))).toBe(sentence);
    expect(() => rewardPlan(scored, settings(given))).toThrow(sentence);
  });

  it('are refused at the start of a run, and in an edit', () => {
    const custom_envs = { Corridor: { rewards: settings({ repetition: { weight: 1 } }) } } as never;
    const same = { ...scored, components: { repetition: 1 } };
    const sentence =
      'config: custom_envs.Corridor.rewards.repetition switches on a built-in component, but /envs/corridor/index.ts declares a component of the same name: rename the component in the code, or set repetition to null';
    expect(() => requireComponents([same], { custom_envs })).toThrow(sentence);
    expect(() => requireComponents([scored], { custom_envs })).not.toThrow();
    const prepared = { tag: 'Corridor', files: ['/a.ts'], environment: same };
    expect(withComponentCheck(prepared, { custom_envs } as never)).toEqual({
      tag: 'Corridor',
      files: ['/a.ts'],
      problems: [{ file: same.source, line: 1, column: 1, message: sentence, kind: 'load' }],
    });
    const fitting = { ...prepared, environment: scored };
    expect(withComponentCheck(fitting, { custom_envs } as never)).toBe(fitting);
  });
});
