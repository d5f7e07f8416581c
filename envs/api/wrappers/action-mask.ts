// Forbids some actions in some states. A forbidden action is not passed to the environment: the state stays the same,
// the reward is `penalty`, and the action is reported as invalid. If actions are named, the info contains
// `action_mask`, an array with one boolean per action, in the order of the ids. True means allowed. `solve` returns a
// solution only if the mask allows each of its actions; the wrapper replays the solution in a second environment to
// check this.
import type { z } from 'zod';
import type {
  Action,
  ActionLookup,
  Environment,
  EnvironmentDefinition,
  Info,
  Observation,
  ResetOptions,
} from '../environment';
import type { NextTurn } from '../roles';
import { actionNames, after, imagesOf, observationOf, textOf, wrap } from './wrap';

/** The state passed to the function that decides whether an action is allowed. */
export interface MaskedState<Config> {
  observation: Observation;
  info: Info;
  /** Steps that the environment has executed; forbidden actions do not count. */
  steps: number;
  config: Config;
}

export interface ActionMaskOptions {
  /** Reward of a forbidden action; default 0. */
  penalty?: number;
  /** If true, each observation ends with a line that lists the allowed actions. */
  tell?: boolean;
}

type Allows<Config> = (action: Action, state: MaskedState<Config>) => boolean;

/** @param allows returns true if the action is allowed in the state; must be a pure function of its two arguments */
export function withActionMask<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  allows: Allows<z.infer<Schema>>,
  { penalty = 0, tell = false }: ActionMaskOptions = {},
): EnvironmentDefinition<Schema> {
  return wrap(definition, (inner, config) => {
    let state: MaskedState<z.infer<Schema>> = { observation: '', info: {}, steps: 0, config };
    let names: ActionLookup = actionNames(definition, config);
    let begin: ResetOptions = { seed: 0 };
    let taken: Action[] = [];
    /** What the last result says about the next turn; a forbidden action leaves it as it is. */
    let turn: NextTurn = {};
    let over = false;

    /** Records the new state, and adds the mask to a result's info and observation. */
    const arrive = <T extends { observation: Observation; info?: Info } & NextTurn>(result: T): T => {
      const { role, actions } = result;
      turn = role === undefined ? {} : { role, ...(actions && { actions }) };
      names = turn.actions ?? names;
      state = { observation: result.observation, info: result.info ?? {}, steps: taken.length, config };
      const ids = Object.keys(names).map(Number);
      if (ids.length === 0) return result;
      const action_mask = ids.map(id => allows(id, state));
      const open = ids.filter((_, i) => action_mask[i]).map(id => names[id]);
      const text = `${textOf(result.observation)}\nOpen actions: ${open.join(', ') || 'none'}.`;
      const observation = tell ? observationOf(text, imagesOf(result.observation)) : result.observation;
      return { ...result, observation, info: { ...result.info, action_mask } };
    };

    return {
      reset: options =>
        after(inner.reset(options), begun => {
          begin = options;
          taken = [];
          over = false;
          names = begun.actions ?? actionNames(definition, config);
          return arrive(begun);
        }),
      step(action) {
        if (over || allows(action, state))
          return after(inner.step(action), result => {
            taken.push(action);
            over = result.terminated || result.truncated;
            return arrive(result);
          });
        const refused = { ...state.info, action_is_effective: false, action_is_valid: false, success: false };
        const { info, ...shown } = arrive({ observation: state.observation, info: state.info, ...turn });
        return {
          ...shown,
          reward: penalty,
          terminated: false,
          truncated: false,
          info: { ...info, ...refused, ...('action_mask' in info && { action_mask: info.action_mask }) },
        };
      },
      ...(inner.solve && {
        async solve() {
          const solution = await inner.solve!();
          if (!solution) return undefined;
          const open = await passes(definition.create(config), { begin, taken, solution }, allows, config);
          return open ? solution : undefined;
        },
      }),
    };
  });
}

/** Whether the mask allows every action of a solution, each in the state to which the preceding actions lead. */
async function passes<Config>(
  environment: Environment,
  { begin, taken, solution }: { begin: ResetOptions; taken: readonly Action[]; solution: readonly Action[] },
  allows: Allows<Config>,
  config: Config,
): Promise<boolean> {
  try {
    let { observation, info = {} } = await environment.reset(begin);
    const actions = [...taken, ...solution];
    for (let steps = 0; steps < actions.length; steps++) {
      if (steps >= taken.length && !allows(actions[steps], { observation, info, steps, config })) return false;
      const result = await environment.step(actions[steps]);
      if (result.terminated || result.truncated) return true; // the remaining actions are not needed
      ({ observation, info } = result);
    }
    return true;
  } finally {
    await environment.close?.();
  }
}
