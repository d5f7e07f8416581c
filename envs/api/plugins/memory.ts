// The interface of context memories of the workspace. A file whose default export is created by `defineMemory` is named by
// `workbench.plugins.memory`. With `agent_proxy.context_window_mode: single_turn`, it writes the summary of earlier turns
// that the model sees before the current turn. Invariant: `remember` is a function of its argument.
import type { AnsweredTurn } from '../rewards';

/** A finished turn of the episode. */
export type PastTurn = Readonly<
  Pick<AnsweredTurn, 'turn' | 'state' | 'raw' | 'thought' | 'answer' | 'executed' | 'reward'>
>;

export interface MemoryRequest {
  /** Name of the environment. */
  environment: string;
  /** Number of the current turn, from 2, and the state that it shows. */
  turn: number;
  state: string;
  /** All finished turns, oldest first. */
  past: readonly PastTurn[];
  /**
   * Number of the newest turns that the summary should describe: at first `agent_proxy.max_context_window` − 1 or all,
   * then fewer if the prompt does not fit into the model's context, down to 0.
   */
  shown: number;
}

/** The default export of a memory's file. */
export interface MemoryPlugin {
  readonly kind: 'memory';
  /** Name in messages. */
  name: string;
  /** Returns the text that precedes the current turn; empty for none. */
  remember(request: MemoryRequest): string;
}

/** Declares a context memory. */
export function defineMemory(definition: Omit<MemoryPlugin, 'kind'>): MemoryPlugin {
  return { kind: 'memory', ...definition };
}
