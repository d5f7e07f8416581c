// Base of the wrappers. Wrapping a definition returns a definition with the same configuration schema, so wrappers can
// be nested in any order. Invariants:
// * Methods that a wrapper does not replace are passed through: `render`, `solve`, `close`, tools, `state`, `score` and
//   `scoreEpisode` exist if the inner environment has them. Tool calls reach the inner environment directly; `step` of a
//   wrapper sees answers only.
// * If the inner environment returns synchronously, the wrapped environment does too.
// * The episode stays a pure function of (config, seed, member, actions).
// * A step after the end of the episode throws. The inner environment cannot enforce this rule, because a wrapper may
//   end an episode early.
import type { z } from 'zod';
import type {
  Action,
  ActionLookup,
  Environment,
  EnvironmentDefinition,
  MaybePromise,
  Observation,
} from '../environment';
import type { AnsweredEpisode, AnsweredTurn } from '../rewards';
import type { StateForm } from '../state-forms';

/**
 * Returns a definition whose environments are wrapped: the methods returned by `around` replace those of the inner
 * environment. `around` is called once for each environment, so its local variables are the wrapper's state.
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
        ...(inner.tools && { tools: inner.tools }),
        ...(inner.afterCalls && { afterCalls: () => inner.afterCalls!() }),
        ...(inner.render && { render: (mode: string) => inner.render!(mode) }),
        ...(inner.solve && { solve: () => inner.solve!() }),
        ...(inner.close && { close: () => inner.close!() }),
        ...(inner.state && { state: (form: StateForm) => inner.state!(form) }),
        ...(inner.score && { score: (turn: AnsweredTurn) => inner.score!(turn) }),
        ...(inner.scoreEpisode && { scoreEpisode: (episode: AnsweredEpisode) => inner.scoreEpisode!(episode) }),
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

/** Applies `then` to a value, or to a promise's value. Returns synchronously if the value is not a promise. */
export function after<T, R>(value: MaybePromise<T>, then: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(then) : then(value);
}

/**
 * Returns the names of a definition's actions under a configuration, by id. Returns an empty record if the actions are
 * texts.
 */
export function actionNames<Schema extends z.ZodType>(
  { actions }: EnvironmentDefinition<Schema>,
  config: z.infer<Schema>,
): ActionLookup {
  return (typeof actions === 'function' ? actions(config) : actions) ?? {};
}

/** Returns an action in the form that the model writes: its name, or its text. */
export const actionText = (action: Action, names: ActionLookup): string => names[Number(action)] ?? String(action);

export const textOf = (observation: Observation): string =>
  typeof observation === 'string' ? observation : observation.text;

export const imagesOf = (observation: Observation): Uint8Array[] =>
  typeof observation === 'string' ? [] : observation.images;

/** Returns an observation with a text and the images for its placeholders; a plain string if `images` is empty. */
export const observationOf = (text: string, images: Uint8Array[]): Observation =>
  images.length > 0 ? { text, images } : text;
