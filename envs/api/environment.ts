// The interface of an environment, with Gymnasium's names and meanings. An environment file has one default export,
// created by `defineEnvironment`. All of this code runs in the environment process. Invariant: an episode is a pure
// function of (config, seed, member, actions), so it can be replayed.
import type { z } from 'zod';

/** An observation: text, or text with images (PNG bytes), one for each `<image>` placeholder in the text. */
export type Observation = string | { text: string; images: Uint8Array[] };

/** Values and flags of a step; numeric and boolean ones are averaged into metrics under their key. */
export type Info = Record<string, unknown>;

/** An action: the id of a named action if the environment declares `actions`, else the text of the answer. */
export type Action = number | string;

export interface ResetOptions {
  /** Seed of the prompt group: equal seeds give equal initial observations. */
  seed: number;
  /** Index of the episode in its group; used only by random streams that may differ within a group (payouts). */
  member?: number;
  mode?: 'train' | 'val';
}

export interface StepResult {
  observation: Observation;
  reward: number;
  /** The task itself ended the episode (Gymnasium's `terminated`). */
  terminated: boolean;
  /** A limit outside the task ended the episode (Gymnasium's `truncated`). */
  truncated: boolean;
  /** `success`, `action_is_valid` and `action_is_effective` where they apply; optionally `raw_reward` and `score`. */
  info: Info;
}

export interface Environment {
  /**
   * Returned `actions` name the actions of this episode and replace the definition's; for actions that differ between
   * episodes.
   */
  reset(options: ResetOptions): MaybePromise<{ observation: Observation; info?: Info; actions?: ActionLookup }>;
  step(action: Action): MaybePromise<StepResult>;
  /** The state in another format, for display. */
  render?(mode: string): MaybePromise<Observation>;
  /** Actions that solve the episode from the current state; undefined if there are none. */
  solve?(): MaybePromise<Action[] | undefined>;
  close?(): MaybePromise<void>;
}

export type MaybePromise<T> = T | Promise<T>;

/** Names of discrete actions by id, as shown to the model (RAGEN's `action_lookup`). */
export type ActionLookup = Readonly<Record<number, string>>;

/**
 * A zod schema, as the bound of type parameters. An environment is type-checked again at each save, and a bound of
 * `z.ZodType` makes that take twenty times as long.
 */
export type ConfigSchema = z.core.$ZodType;

export interface EnvironmentDefinition<Schema extends ConfigSchema = z.ZodType> {
  /** RAGEN's `env_type`. */
  name: string;
  /** Schema of `env_config`, with a default for each key. */
  config: Schema;
  /** Names of the discrete actions; absent (or undefined for a configuration) if actions are texts. */
  actions?: ActionLookup | ((config: z.infer<Schema>) => ActionLookup | undefined);
  /** The whole answer is one action and is not split at `agent_proxy.action_sep`. For programs and similar actions. */
  wholeAnswer?: boolean;
  /** The task description in the system message; a tag's `env_instruction` replaces it. */
  instruction: string | ((config: z.infer<Schema>) => string);
  /**
   * Meaning of each symbol in the observation under this configuration (RAGEN's `grid_vocab`); omitted or empty if
   * there are no symbols.
   */
  legend?: (config: z.infer<Schema>) => Record<string, string>;
  /**
   * Checks the environment's external dependencies under this configuration; throws `MissingDependency` for a missing
   * one.
   */
  dependencies?: (config: z.infer<Schema>) => MaybePromise<void>;
  /**
   * Minimum timeout of a call in milliseconds, for calls that wait for something external; `workbench.step_timeout_ms`
   * applies if it is larger.
   */
  patience?: (config: z.infer<Schema>) => number;
  create(config: z.infer<Schema>): Environment;
}

/** A missing external dependency of an environment: a data file, a program or a server. */
export class MissingDependency extends Error {
  override readonly name = 'MissingDependency';

  /**
   * @param what predicate of a sentence whose subject is the environment: 'finds no Lean server at http://…'
   * @param remedy how to get the dependency, as an imperative
   */
  constructor(
    what: string,
    readonly remedy: string,
  ) {
    super(what);
  }
}

/** Declares an environment: the identity function, which infers and checks the types. */
export function defineEnvironment<Schema extends ConfigSchema>(
  definition: EnvironmentDefinition<Schema>,
): EnvironmentDefinition<Schema> {
  return definition;
}
