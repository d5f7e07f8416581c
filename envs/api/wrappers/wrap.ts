// What the wrappers share: a wrapped definition is a definition again, with the same configuration, so that wrappers stack in any order.
// Invariants: what a wrapper does not change passes through (render, solve and close exist where the inner environment has them); an
// inner environment that answers at once is answered for at once; the episode stays a pure function of (config, seed, member, actions); a
// step after the end is refused, since a wrapper may have ended an episode that goes on within, or change what its last step shows and earns.
import type { z } from 'zod';
import type {
  Action,
  ActionLookup,
  Environment,
  EnvironmentDefinition,
  MaybePromise,
  Observation,
} from '../environment';

/**
 * A definition whose environments are wrapped: what `around` gives takes the place of the inner environment's methods.
 * It is called once for each environment, so what it declares is the wrapper's state.
 */
export function wrap<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  around: (inner: Environment, config: z.infer<Schema>) => Partial<Environment>,
): EnvironmentDefinition<Schema> {
  return {
    ...definition,
    create(config) {
      const inner = definition.create(config);
      const wrapped: Environment = {
        reset: options => inner.reset(options),
        step: action => inner.step(action),
        ...(inner.render && { render: (mode: string) => inner.render!(mode) }),
        ...(inner.solve && { solve: () => inner.solve!() }),
        ...(inner.close && { close: () => inner.close!() }),
        ...around(inner, config),
      };
      let over = false;
      return {
        ...wrapped,
        reset(options) {
          over = false;
          return wrapped.reset(options);
        },
        step(action) {
          if (over) throw new Error('the episode is over: reset it');
          return after(wrapped.step(action), result => {
            over = result.terminated || result.truncated;
            return result;
          });
        },
      };
    },
  };
}

/** What follows a value that may still be on its way; without delay where it is not. */
export function after<T, R>(value: MaybePromise<T>, then: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(then) : then(value);
}

/** Names of a definition's actions under a configuration, by id; empty where it takes texts. */
export function actionNames<Schema extends z.ZodType>(
  { actions }: EnvironmentDefinition<Schema>,
  config: z.infer<Schema>,
): ActionLookup {
  return (typeof actions === 'function' ? actions(config) : actions) ?? {};
}

/** An action as the model writes it. */
export const actionText = (action: Action, names: ActionLookup): string => names[Number(action)] ?? String(action);

export const textOf = (observation: Observation): string =>
  typeof observation === 'string' ? observation : observation.text;

export const imagesOf = (observation: Observation): Uint8Array[] =>
  typeof observation === 'string' ? [] : observation.images;

/** An observation of a text and the images at its marks; a plain text where there are none. */
export const observationOf = (text: string, images: Uint8Array[]): Observation =>
  images.length > 0 ? { text, images } : text;
