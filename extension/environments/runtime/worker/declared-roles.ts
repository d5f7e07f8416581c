// Checks the roles that a definition declares. Faults contain a remedy.
import type { RoleDescription } from '../../../protocol/environment-link';
import { isRole, largest, mostRoles } from '../../../protocol/environment-message-bounds';
import { badValue } from '../threads/fault';
import { shown } from './returned-values';

/**
 * Checks the declared roles. Returns undefined if the value is undefined or null.
 * @throws FaultError if the declaration is invalid
 */
export function declaredRoles(roles: unknown): RoleDescription[] | undefined {
  if (roles === undefined || roles === null) return undefined;
  const entries = typeof roles === 'object' && !Array.isArray(roles) ? Object.entries(roles) : [];
  if (entries.length === 0 || entries.length > mostRoles || !entries.every(([name]) => isRole(name)))
    throw badValue(
      `declares the roles ${shown(roles)}`,
      `declare 1 to ${mostRoles} roles by name, such as { first: {}, second: {} }, with names of at most 32 letters, digits, _ and -`,
    );
  return entries.map(([name, role]: [string, unknown]) => {
    const { instruction } = (role ?? {}) as { instruction?: unknown };
    if (instruction === undefined) return { name };
    if (typeof instruction !== 'string' || instruction.length > largest)
      throw badValue(
        `declares the role ${name} with the instruction ${shown(instruction)}`,
        `use a string of at most ${largest} characters`,
      );
    return { name, instruction };
  });
}
