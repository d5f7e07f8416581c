// Converts actions between the form that users write and the form that environments receive. Users write a named action
// as its id or its name, in upper or lower case.
import { UserError } from '../../common/user-error';

export type ActionNames = Readonly<Record<string, string>> | undefined;

const named = (names: ActionNames): names is Readonly<Record<string, string>> =>
  names !== undefined && Object.keys(names).length > 0;

/**
 * Converts an action, as a user wrote it, to the form that the environment receives. A number is returned unchanged,
 * even if it is not the id of an action. If actions are not named, texts are returned unchanged too.
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

/** Returns an action for display: its name if actions are named, otherwise its id or text. */
export function nameOf(action: number | string, names: ActionNames): string {
  return (typeof action === 'number' && names?.[action]) || String(action);
}
