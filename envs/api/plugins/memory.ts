// The interface of context memories, which write the user message of a turn with `agent_proxy.context_window_mode:
// single_turn`, or the summary of earlier turns in it. The built-in memories (extension/trainer/rollout/memories.ts)
// implement it, and so does a plug-in: a file whose default export is created by `defineMemory` and that
// `workbench.plugins.memory` names. Invariant: `remember` is a function of its argument.
import type { AnsweredTurn } from '../rewards';

/** A finished turn of the episode. */
export type PastTurn = Readonly<
  Pick<AnsweredTurn, 'turn' | 'state' | 'raw' | 'thought' | 'answer' | 'executed' | 'reward'>
>;

export interface MemoryRequest {
  /** Name of the environment. */
  environment: string;
  /** Number of the current turn, and the state that it shows. */
  turn: number;
  state: string;
  /**
   * The text of the current turn in prompts without a memory: its state, a warning if the previous answer had no valid
   * action, and the instructions, without the heading `Turn N:`.
   */
  current: string;
  /** The format instructions: remaining actions, format and maximum length of the answer. */
  instructions: string;
  /** Whether the previous answer had no valid action. */
  warn: boolean;
  /** Name of the tag that encloses an answer (`workbench.answer_tag`). */
  answer_tag: 'answer' | 'ans';
  /** All finished turns, oldest first. */
  past: readonly PastTurn[];
  /**
   * Number of the newest turns that the summary should describe: at first `agent_proxy.max_context_window` − 1 or all,
   * then fewer if the prompt does not fit into the model's context, down to 0.
   */
  shown: number;
}

/** A context memory. */
export interface Memory {
  /**
   * Returns the text that precedes the current turn, empty for none; or the complete user message, which must contain
   * the current turn.
   */
  remember(request: MemoryRequest): string | { message: string };
}

/** The default export of a memory's file. */
export interface MemoryPlugin extends Memory {
  readonly kind: 'memory';
  /** Name in messages. */
  name: string;
  /** Whether `remember` is called for the first turn too; by default, the first turn has no memory. */
  readonly firstTurn?: boolean;
}

/** Declares a context memory. */
export function defineMemory(definition: Omit<MemoryPlugin, 'kind'>): MemoryPlugin {
  return { kind: 'memory', ...definition };
}
