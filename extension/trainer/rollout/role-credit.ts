// What each role of an episode has earned (envs/api/roles.ts). Pure. The return of a role is the sum of the rewards,
// format penalties and reward components of its turns. A reward that a role earns while another role acts is added to
// its last turn, or to its first turn if it has not played yet; if it never plays, to its return alone. Components of the
// complete episode count for every role.
import type { EpisodeTurn } from '../../run-data/episode';
import type { RoleReturn } from '../../run-data/role-return';

/** What an episode in progress knows of a role. */
export interface RoleState {
  success: boolean;
  /** Sum of the rewards that the role earned before its first turn; 0 from that turn on. */
  waiting: number;
  /** The model behind an API that plays the role; absent if the policy plays it. */
  player?: string;
}

type Turn = Omit<EpisodeTurn, 'span'>;

/**
 * Adds what the roles have earned by a step to their last turns, and notes their successes.
 * @param turns the turns of the episode, including the one whose step this is; rewards are changed in place
 * @param outcomes outcomes by role, one record per executed action
 */
export function creditRoles(
  turns: readonly Turn[],
  states: Readonly<Record<string, RoleState>>,
  outcomes: readonly Readonly<Record<string, { reward?: number; success?: boolean }>>[],
): void {
  for (const outcome of outcomes)
    for (const [role, { reward, success }] of Object.entries(outcome)) {
      const last = turns.findLast(turn => turn.role === role);
      if (reward !== undefined && last) last.reward += reward;
      else if (reward !== undefined) states[role].waiting += reward;
      if (success !== undefined) states[role].success = success;
    }
}

/** Adds to a turn what its role has earned before its first turn. */
export function creditWaiting(turn: Turn, states: Readonly<Record<string, RoleState>>): void {
  const state = turn.role === undefined ? undefined : states[turn.role];
  if (!state || state.waiting === 0) return;
  turn.reward += state.waiting;
  state.waiting = 0;
}

/** Returns what each role has earned, in the order of `states`. */
export function roleReturns(
  states: Readonly<Record<string, Pick<RoleReturn, 'success'> & Partial<RoleState>>>,
  turns: readonly Turn[],
  end_reward = 0,
): Record<string, RoleReturn> {
  const returns = Object.entries(states).map(([role, { success, waiting = 0, player }]): [string, RoleReturn] => {
    const own = turns.filter(turn => turn.role === role);
    const reward = own.reduce((sum, turn) => sum + turn.reward, waiting);
    const penalty = own.reduce((sum, turn) => sum + turn.penalty, 0);
    const earned = own.reduce((sum, turn) => sum + (turn.component_reward ?? 0), end_reward);
    return [
      role,
      {
        turns: own.length,
        reward,
        penalty,
        score: reward + penalty + earned,
        success,
        ...(player !== undefined && { player }),
      },
    ];
  });
  return Object.fromEntries(returns);
}
