// What an environment is: the interface a user implements, with Gymnasium's names and meanings.
// An environment file has one default export, made by `defineEnvironment`. Everything here runs in the environment process.
// Invariant: an episode is a pure function of (config, seed, member, actions), so that it can be replayed.
import type { z } from 'zod';

/** An observation: text, or text with images (PNG bytes) at each `<image>` mark of the text. */
export type Observation = string | { text: string; images: Uint8Array[] };

/** Numbers and flags about a step; numeric and boolean ones are averaged into metrics under their key. */
export type Info = Record<string, unknown>;

/** An action: the id of a named action where the environment declares `actions`, else the answer's text. */
export type Action = number | string;

export interface ResetOptions {
  /** Seed of the prompt group: equal seeds give equal initial observations. */
  seed: number;
  /** Index of the episode in its group; only streams that may differ inside a group (payouts) use it. */
  member?: number;
  mode?: 'train' | 'val';
}

export interface StepResult {
  observation: Observation;
  reward: number;
  /** The task itself ended (Gymnasium's `terminated`). */
  terminated: boolean;
  /** A limit outside the task ended the episode (Gymnasium's `truncated`). */
  truncated: boolean;
  /** `success`, `action_is_valid`, `action_is_effective` where they make sense; optional `raw_reward`, `score`. */
  info: Info;
}

export interface Environment {
  /** `actions` names this episode's actions where they differ between episodes; they take the place of the definition's. */
  reset(options: ResetOptions): MaybePromise<{ observation: Observation; info?: Info; actions?: ActionLookup }>;
  step(action: Action): MaybePromise<StepResult>;
  /** The state in another form, for people and pictures. */
  render?(mode: string): MaybePromise<Observation>;
  /** Actions that solve the episode from the present state, or undefined where none exists. */
  solve?(): MaybePromise<Action[] | undefined>;
  close?(): MaybePromise<void>;
}

export type MaybePromise<T> = T | Promise<T>;

/** Names of discrete actions by id, as shown to the model (RAGEN's `action_lookup`). */
export type ActionLookup = Readonly<Record<number, string>>;

/**
 * A zod schema, as the bound of type parameters: the types of an environment are checked again with each save, and against `z.ZodType`
 * that takes twenty times as long.
 */
export type ConfigSchema = z.core.$ZodType;

export interface EnvironmentDefinition<Schema extends ConfigSchema = z.ZodType> {
  /** RAGEN's `env_type`. */
  name: string;
  /** Schema of `env_config`, with a default for each key. */
  config: Schema;
  /** Names of the discrete actions; absent, or undefined for a configuration, where answers are texts. */
  actions?: ActionLookup | ((config: z.infer<Schema>) => ActionLookup | undefined);
  /** The answer is one action whatever it contains: its text is not split at `agent_proxy.action_sep`. For programs and the like. */
  wholeAnswer?: boolean;
  /** What the system message says of the task; a tag's `env_instruction` takes its place. */
  instruction: string | ((config: z.infer<Schema>) => string);
  /** Meaning of each symbol of the observation under this configuration (RAGEN's `grid_vocab`); omitted or empty when there is none. */
  legend?: (config: z.infer<Schema>) => Record<string, string>;
  /** Looks for what the environment cannot do without under this configuration; throws `MissingDependency` for what is not there. */
  dependencies?: (config: z.infer<Schema>) => MaybePromise<void>;
  /** Milliseconds that a call may take at least, for those that wait for something outside; `workbench.step_timeout_ms` where it is larger. */
  patience?: (config: z.infer<Schema>) => number;
  create(config: z.infer<Schema>): Environment;
}

/** Something outside that an environment needs and does not find: a data file, a program, a server. */
export class MissingDependency extends Error {
  override readonly name = 'MissingDependency';

  /**
   * @param what the predicate of a sentence whose subject is the environment: 'finds no Lean server at http://…'
   * @param remedy how to get it, as an imperative
   */
  constructor(
    what: string,
    readonly remedy: string,
  ) {
    super(what);
  }
}

/** Declares an environment; the identity function, there to infer and check types. */
export function defineEnvironment<Schema extends ConfigSchema>(
  definition: EnvironmentDefinition<Schema>,
): EnvironmentDefinition<Schema> {
  return definition;
}
