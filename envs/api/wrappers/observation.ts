// Replaces each observation (Gymnasium's TransformObservation). The replacement is computed from the original
// observation, or from the state in another render mode. Can also replace the instruction and the legend in the system
// message.
import type { z } from 'zod';
import type { Action, EnvironmentDefinition, Info, MaybePromise, Observation } from '../environment';
import { after, wrap } from './wrap';

/** The state of the episode at the time of an observation. */
export interface ObservedState<Config> {
  /** The action that led to this state; undefined after a reset. */
  action?: Action;
  info: Info;
  /** Steps taken since the reset. */
  steps: number;
  config: Config;
  /**
   * Returns the state in the given mode of the environment's `render`.
   * @throws Error if the environment has no `render`
   */
  render(mode: string): MaybePromise<Observation>;
}

/**
 * @param observe returns the observation to show; must be a pure function of its arguments
 * @param texts instruction and legend that match the new observation; default: those of the definition
 */
export function withObservation<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  observe: (observation: Observation, state: ObservedState<z.infer<Schema>>) => MaybePromise<Observation>,
  texts: Partial<Pick<EnvironmentDefinition<Schema>, 'instruction' | 'legend'>> = {},
): EnvironmentDefinition<Schema> {
  return wrap({ ...definition, ...texts }, (inner, config) => {
    let steps = 0;
    const render = (mode: string) => {
      if (inner.render) return inner.render(mode);
      throw new Error(`withObservation: ${definition.name} has no render: use the observation itself`);
    };
    const shown = <T extends { observation: Observation; info?: Info }>(result: T, action?: Action) =>
      after(observe(result.observation, { action, info: result.info ?? {}, steps, config, render }), observation => ({
        ...result,
        observation,
      }));
    return {
      reset: options =>
        after(inner.reset(options), begun => {
          steps = 0;
          return shown(begun);
        }),
      step: action =>
        after(inner.step(action), result => {
          steps++;
          return shown(result, action);
        }),
    };
  });
}
