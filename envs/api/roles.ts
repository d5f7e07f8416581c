// The roles of an environment with several players: a game for two, a user simulator and an agent, a writer and a
// judge. The definition declares the roles, each step names the role whose turn is next, and only this role sees the
// observation. The trainer keeps a context for each role. A player that is part of the environment's own code, such as a
// perfect opponent, is no role: `step` plays its moves and describes them in the observation of the next turn.

/** A role that a model plays. */
export interface Role {
  /** Task description in the role's system message; by default the instruction of the environment. */
  instruction?: string;
}

/** The roles of an environment by name. The names consist of letters, digits, `_` and `-`. */
export type Roles = Readonly<Record<string, Role>>;

/** What a step means for one role. */
export interface RoleOutcome {
  /**
   * Reward of the role for this step, in addition to the step's `reward`, which belongs to the role that acted. It is
   * credited to the last turn of the role.
   */
  reward?: number;
  /** Whether the role has succeeded. A value of a later step replaces it. */
  success?: boolean;
}

/** What `reset` and `step` say about the next turn, in environments with roles. */
export interface NextTurn {
  /** The role whose turn is next and that sees the observation; required unless the episode is over. */
  role?: string;
  /** Names of the legal actions of the next turn; by default, the names remain as they are. */
  actions?: Readonly<Record<number, string>>;
}
