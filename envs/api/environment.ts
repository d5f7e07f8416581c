// The interface of an environment, with Gymnasium's names and meanings. An environment file has one default export,
// created by `defineEnvironment`. Environments run in the environment process. Invariant: an episode is a pure function
// of (config, seed, member, actions), so it can be replayed.
import type { z } from 'zod';
import type { AnsweredEpisode, AnsweredTurn, ComponentValues, ComponentWeights } from './rewards';
import type { StateForm } from './state-forms';
import type { NextTurn, RoleOutcome, Roles } from './roles';
import type { Tools } from './tools/tool';

/** An observation: text, or text with PNG images. The text contains one `<image>` placeholder per image. */
export type Observation = string | { text: string; images: Uint8Array[] };

/**
 * Values and flags of a step. If the values of a key are numbers or booleans, a run logs their average as a metric
 * under the key's name.
 */
export type Info = Record<string, unknown>;

/**
 * An action: the id of a named action if the environment declares `actions`, otherwise the text of the model's answer.
 */
export type Action = number | string;

export interface ResetOptions {
  /** Seed of the prompt group: equal seeds give equal initial observations. */
  seed: number;
  /**
   * Index of the episode in its group, from 0. Used only for random numbers that may differ within a group, such as
   * payouts.
   */
  member?: number;
  mode?: 'train' | 'val';
}

export interface StepResult extends NextTurn {
  observation: Observation;
  reward: number;
  /** The task itself ended the episode (Gymnasium's `terminated`). */
  terminated: boolean;
  /** A limit outside the task ended the episode (Gymnasium's `truncated`). */
  truncated: boolean;
  /**
   * Contains `success`, `action_is_valid` and `action_is_effective` if the environment defines them. It may also
   * contain `raw_reward` and `score`.
   */
  info: Info;
  /** Rewards and successes by role; only in an environment that declares roles. */
  roles?: Readonly<Record<string, RoleOutcome>>;
}

export interface Environment {
  /**
   * Starts an episode. An environment whose actions differ between episodes returns `actions`, which replace the
   * definition's actions for this episode. An environment with roles returns the `role` whose turn is first.
   */
  reset(options: ResetOptions): MaybePromise<{ observation: Observation; info?: Info } & NextTurn>;
  step(action: Action): MaybePromise<StepResult>;
  /**
   * The tools that the model may call before it answers. `step` then receives the answers only. The tools of all
   * episodes have the same names, descriptions and parameters.
   */
  tools?: Tools;
  /** Called after the calls of each turn. Returns what the calls have earned, and whether they ended the episode. */
  afterCalls?(): MaybePromise<CallsOutcome>;
  /** Returns the current state in the given render mode. */
  render?(mode: string): MaybePromise<Observation>;
  /**
   * Returns actions that solve the episode from the current state; undefined if the solver finds none. With roles, the
   * first action is that of the role whose turn is next, and the plan contains the actions of all roles in order.
   */
  solve?(): MaybePromise<Action[] | undefined>;
  close?(): MaybePromise<void>;
  /**
   * Returns the true state in a form that the definition's `stateForms` declares. Descriptions in the model's answers
   * are compared with it. Must not change the state of the episode.
   */
  state?(form: StateForm): MaybePromise<string>;
  /**
   * Returns values of the reward components that the definition declares, for a turn whose actions were executed. Must
   * not change the state of the episode.
   */
  score?(turn: AnsweredTurn): MaybePromise<ComponentValues>;
  /** Does the same for an episode that is over. */
  scoreEpisode?(episode: AnsweredEpisode): MaybePromise<ComponentValues>;
}

/** The effect of a turn's tool calls; by default, no reward, and the episode continues. */
export type CallsOutcome = Partial<Omit<StepResult, 'observation'>>;

export type MaybePromise<T> = T | Promise<T>;

/** Names of discrete actions by id, as shown to the model (RAGEN's `action_lookup`). */
export type ActionLookup = Readonly<Record<number, string>>;

/**
 * Any zod schema. The type parameter of `EnvironmentDefinition` extends this type. If it extended `z.ZodType`, the type
 * check of an environment would take twenty times as long. Environments are type-checked at each save.
 */
export type ConfigSchema = z.core.$ZodType;

export interface EnvironmentDefinition<Schema extends ConfigSchema = z.ZodType> {
  /** Name of the environment (RAGEN's `env_type`). */
  name: string;
  /** Schema of `env_config`, with a default for each key. */
  config: Schema;
  /**
   * Names of the discrete actions. Omitted if actions are texts. If the names depend on the configuration, this is a
   * function; it returns undefined for a configuration whose actions are texts.
   */
  actions?: ActionLookup | ((config: z.infer<Schema>) => ActionLookup | undefined);
  /** If true, the whole answer, for example a program, is one action and is not split at `agent_proxy.action_sep`. */
  wholeAnswer?: boolean;
  /**
   * If true, the environment runs a program that calls the model: observations are calls and actions are replies
   * (model-calls.ts). The conversation is then the program's own; `instruction` is not shown to the model.
   */
  modelCalls?: boolean;
  /** Maximum number of episodes that run at the same time; by default, all episodes of a batch do. */
  atOnce?: (config: z.infer<Schema>) => number;
  /**
   * The task description in the system message; the configuration key `env_instruction` of an environment tag replaces
   * it.
   */
  instruction: string | ((config: z.infer<Schema>) => string);
  /**
   * Meaning of each symbol in the observation under this configuration (RAGEN's `grid_vocab`). Omitted or empty if the
   * observation contains no symbols.
   */
  legend?: (config: z.infer<Schema>) => Record<string, string>;
  /**
   * Checks the environment's external dependencies under this configuration; throws `MissingDependency` if one is
   * missing.
   */
  dependencies?: (config: z.infer<Schema>) => MaybePromise<void>;
  /**
   * Minimum call timeout in milliseconds, for environments whose calls wait for external resources. The timeout is the
   * larger of this value and `workbench.step_timeout_ms`.
   */
  patience?: (config: z.infer<Schema>) => number;
  /**
   * The forms that `state` gives, and what a description in each form contains, as the model reads it: for example
   * `{ structured: 'a JSON object such as {"player": [row, column]}' }`.
   */
  stateForms?: StateForms | ((config: z.infer<Schema>) => StateForms);
  /** The roles that models play; by default, the model plays all turns in one context (roles.ts). */
  roles?: Roles | ((config: z.infer<Schema>) => Roles | undefined);
  /** The reward components that `score` and `scoreEpisode` return, each with its default weight. */
  components?: ComponentWeights;
  create(config: z.infer<Schema>): Environment;
}

/** What a description of a state contains, by its form. */
export type StateForms = Readonly<Partial<Record<StateForm, string>>>;

/** A missing external dependency of an environment: a data file, a program or a server. */
export class MissingDependency extends Error {
  override readonly name = 'MissingDependency';

  /**
   * @param what describes the problem as the rest of a sentence that starts with the environment's name: 'cannot reach
   * a Lean server at http://…'
   * @param remedy how to get the dependency, as an imperative
   */
  constructor(
    what: string,
    readonly remedy: string,
  ) {
    super(what);
  }
}

/**
 * Declares an environment. Returns the definition unchanged; the call serves to infer and check the definition's types.
 */
export function defineEnvironment<Schema extends ConfigSchema>(
  definition: EnvironmentDefinition<Schema>,
): EnvironmentDefinition<Schema> {
  return definition;
}
