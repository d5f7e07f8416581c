// Another form of each observation (Gymnasium's TransformObservation): made of the observation itself, or of what `render` shows in
// another mode. What the system message says of the state can be replaced with it.
import type { z } from 'zod';
import type { Action, EnvironmentDefinition, Info, MaybePromise, Observation } from '../environment';
import { after, wrap } from './wrap';

/** Where an observation stands in its episode. */
export interface ObservedState<Config> {
  /** The action that led here; undefined after a reset. */
  action?: Action;
  info: Info;
  /** Steps taken since the reset. */
  steps: number;
  config: Config;
  /**
   * The state in another mode of the environment's `render`.
   * @throws Error where the environment has no `render`
   */
  render(mode: string): MaybePromise<Observation>;
}

/**
 * @param observe gives the observation that is shown instead; it must follow from what it is told alone
 * @param texts what the system message says under the new form, where it has to say something else
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
