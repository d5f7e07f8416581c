// Checks what a step says about roles: the role whose turn is next, its legal actions, and the outcomes by role. Each
// value is copied, and read only once. Faults contain a remedy.
import type { NextTurn, RoleOutcome } from '../../../../envs/api/roles';
import type { RoleDescription } from '../../../protocol/environment-link';
import { badValue } from '../threads/fault';
import { checkedActions } from './definition';
import { shown } from './returned-values';

/**
 * Checks the turn that follows a reset or a step.
 * @param over whether the episode is over; a role is then not required
 * @throws FaultError if no declared role is named
 */
export function checkedTurn({ role, actions }: NextTurn, roles: readonly RoleDescription[], over: boolean): NextTurn {
  if (over) return {};
  const known = roles.some(({ name }) => name === role);
  if (!known)
    throw badValue(
      `returned the role ${shown(role)}`,
      `return one of ${roles.map(({ name }) => name).join(', ')} as the role whose turn is next`,
    );
  return { role: role!, ...(actions !== undefined && { actions: checkedActions(actions) }) };
}

/**
 * Checks the outcomes of a step by role; undefined if it has none.
 * @throws FaultError if an outcome is invalid or its role is not declared
 */
export function checkedRoleOutcomes(
  outcomes: unknown,
  roles: readonly RoleDescription[],
): Record<string, RoleOutcome> | undefined {
  if (outcomes === undefined) return undefined;
  const remedy = 'return outcomes by role, such as { second: { reward: -1, success: false } }';
  if (outcomes === null || typeof outcomes !== 'object' || Array.isArray(outcomes))
    throw badValue(`returned ${shown(outcomes)} as roles`, remedy);
  const checked = Object.entries(outcomes).map(([name, outcome]: [string, unknown]): [string, RoleOutcome] => {
    if (!roles.some(role => role.name === name))
      throw badValue(
        `returned an outcome for the role ${shown(name)}`,
        `use one of ${roles.map(role => role.name).join(', ')}`,
      );
    if (outcome === null || typeof outcome !== 'object')
      throw badValue(`returned ${shown(outcome)} as the outcome of ${name}`, remedy);
    const { reward, success } = outcome as { reward?: unknown; success?: unknown };
    if (reward !== undefined && !(typeof reward === 'number' && Number.isFinite(reward)))
      throw badValue(`returned the reward ${shown(reward)} for the role ${name}`, 'return a finite number');
    if (success !== undefined && typeof success !== 'boolean')
      throw badValue(`returned the success ${shown(success)} for the role ${name}`, 'return true or false');
    return [name, { ...(reward !== undefined && { reward }), ...(success !== undefined && { success }) }];
  });
  return Object.fromEntries(checked);
}
