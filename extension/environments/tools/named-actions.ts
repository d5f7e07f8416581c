// Converts actions between their written form and the environment's: a named action by id or, case-insensitively, by
// name.
import { UserError } from '../../common/user-error';

export type ActionNames = Readonly<Record<string, string>> | undefined;

const named = (names: ActionNames): names is Readonly<Record<string, string>> =>
  names !== undefined && Object.keys(names).length > 0;

/**
 * The environment's action for a written one. Ids pass unchanged, known or not, and so does any text if actions have no
 * names.
 * @throws UserError for a text that is neither a name nor an id
 */
export function actionOf(given: number | string, names: ActionNames): number | string {
  if (typeof given === 'number' || !named(names)) return given;
  const wanted = given.trim().toLowerCase();
  const found = Object.entries(names).find(([, name]) => name.toLowerCase() === wanted);
  if (found) return Number(found[0]);
  if (Object.hasOwn(names, wanted)) return Number(wanted);
  const known = Object.entries(names).map(([id, name]) => `${name} (${id})`);
  throw new UserError(`${JSON.stringify(given)} is not an action of this environment: use one of ${known.join(', ')}`);
}

/** An action for display: its name, else its id or text. */
export function nameOf(action: number | string, names: ActionNames): string {
  return (typeof action === 'number' && names?.[action]) || String(action);
}
