// Replaces the reward of each step (Gymnasium's TransformReward). The environment's own reward is stored in the info as
// `raw_reward`, so that a run shows both rewards. An existing `raw_reward` is not overwritten.
import type { z } from 'zod';
import type { Action, EnvironmentDefinition, Observation, StepResult } from '../environment';
import { after, wrap } from './wrap';

/** The step passed to the reward function. */
export interface ShapedStep<Config> extends StepResult {
  action: Action;
  /** The observation before the step. */
  previous: Observation;
  /** Steps taken, including the current step. */
  steps: number;
  config: Config;
}

/**
 * @param reward returns the reward that replaces `step.reward`. Must be a pure function of its argument (no clock, no
 * `Math.random`, no state between calls). Otherwise equal seeds and actions would give different rewards.
 */
export function withRewardShaping<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  reward: (step: ShapedStep<z.infer<Schema>>) => number,
): EnvironmentDefinition<Schema> {
  return wrap(definition, (inner, config) => {
    let previous: Observation = '';
    let steps = 0;
    return {
      reset: options =>
        after(inner.reset(options), begun => {
          steps = 0;
          previous = begun.observation;
          return begun;
        }),
      step: action =>
        after(inner.step(action), result => {
          steps++;
          const shaped = reward({ ...result, action, previous, steps, config });
          previous = result.observation;
          return { ...result, reward: shaped, info: { raw_reward: result.reward, ...result.info } };
        }),
    };
  });
}
