// Another reward for each step (Gymnasium's TransformReward). The environment's own is told as `raw_reward` in the info, where nothing
// is told under that name yet, so that a run shows both.
import type { z } from 'zod';
import type { Action, EnvironmentDefinition, Observation, StepResult } from '../environment';
import { after, wrap } from './wrap';

/** A step, as the shaping sees it. */
export interface ShapedStep<Config> extends StepResult {
  action: Action;
  /** The observation before the step. */
  previous: Observation;
  /** Steps taken, this one included. */
  steps: number;
  config: Config;
}

/**
 * @param reward gives the reward that takes the place of `step.reward`. It must follow from what it is told alone: no clock, no
 *   `Math.random`, nothing kept between calls, or else equal seeds and actions would no longer give equal rewards.
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
