// The interface of score functions: named reward components of an answer or of an episode. Score functions belong to an
// environment (`Environment.score`, `Environment.scoreEpisode`) or to a rewards file beside it (`defineRewards`). They
// run in the environment process after the actions of the turn. Invariant: a score function depends only on its
// argument and on the state of the episode, and does not change this state, so an episode can be replayed without it.

/** A turn after its actions were executed. The names are those of a turn in an episode file. */
export interface AnsweredTurn {
  /** Number of the turn, from 1. */
  turn: number;
  /** The state that the prompt of the turn showed. */
  state: string;
  /** The model's complete text, including the generation prefix such as `<think>`. */
  raw: string;
  /** Text of the thought; null if the answer does not follow the format, or if `agent_proxy.enable_think` is false. */
  thought: string | null;
  /** Text of the answer; null if the answer does not follow the format. */
  answer: string | null;
  /** Actions as the model wrote them, at most `agent_proxy.max_actions_per_turn`. */
  parsed: readonly string[];
  /** Names of the actions that were executed; empty if the answer contains no valid action. */
  executed: readonly string[];
  /** The tool calls of the answer with their results, in order; absent if it has none. */
  calls?: readonly AnsweredCall[];
  /** Sum of the rewards that the environment gave for the actions. */
  reward: number;
  /** Infos of the actions: for each key, the value of the last action; `raw_reward` is summed. */
  info: Record<string, unknown>;
  /** `length` if the answer was cut at the length limit. */
  finish: 'stop' | 'length';
}

/** A tool call, as it was executed. */
export interface AnsweredCall {
  /** Name of the tool; empty if the call could not be read. */
  name: string;
  arguments: Record<string, unknown>;
  /** The text that the model sees. */
  result: string;
  /** Whether the call was not executed, or the tool reported a failure. */
  error: boolean;
  /** Duration in milliseconds. */
  ms: number;
}

/** An episode that is over. */
export interface AnsweredEpisode {
  turns: readonly AnsweredTurn[];
  final_state: string;
  terminated: boolean;
  truncated: boolean;
  success: boolean;
}

/** Values of reward components by name. A component that is left out has no value for this turn or episode. */
export type ComponentValues = Record<string, number>;

/** Default weights of reward components by name; the configuration key `rewards.weights` of a tag replaces them. */
export type ComponentWeights = Readonly<Record<string, number>>;

type NamedValues<Name extends string> = Partial<Record<Name, number>>;

/** Score functions in a file beside an environment: its default export, created by `defineRewards`. */
export interface RewardsDefinition<Name extends string = string> {
  /** The components that the functions return, each with its default weight. With weight 0, it is only measured. */
  components: Readonly<Record<Name, number>>;
  score?(turn: AnsweredTurn): NamedValues<Name> | Promise<NamedValues<Name>>;
  scoreEpisode?(episode: AnsweredEpisode): NamedValues<Name> | Promise<NamedValues<Name>>;
}

/** Declares score functions. Returns the definition unchanged; the call serves to infer and check its types. */
export function defineRewards<Name extends string>(definition: RewardsDefinition<Name>): RewardsDefinition<Name> {
  return definition;
}
