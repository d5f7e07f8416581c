// What the rollout needs of models behind APIs that play roles; implemented in role-players.ts.
import type { GeneratedRow } from '../../engine/generation-calls';
import type { PromptIds } from './played-context';
import type { PromptTokenizer } from './prompt-tokenizer';

/** Plays a role in one episode. */
export interface RolePlayer {
  /** Takes the place of the tokenizer in the role's context. */
  readonly numbers: PromptTokenizer;
  /**
   * Answers a prompt of the role's context. Never rejects: returns a sentence if there is no answer.
   * @param turn number of the turn in the episode
   */
  answer(prompt: PromptIds, turn: number): Promise<Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'> | string>;
}

/** The players of one rollout. */
export interface RolloutPlayers {
  /**
   * Returns the player of a role in an episode; undefined if the policy plays the role.
   * @param prefix the prefix of every response
   */
  open(episode: { id: string; tag: string }, role: string, prefix: string): RolePlayer | undefined;
  /** Ends all requests. */
  end(): void;
}
