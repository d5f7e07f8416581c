// Returns the request that a key or a command sends in the current session. Returns null if the session's state does
// not allow the request. Pure functions.
import type { PlayDo, PlaySession } from '../../extension/protocol/environment-tools';
import { actionKeys } from './action-keys';

type Request = (session: PlaySession) => PlayDo | null;

const undo: Request = ({ steps }) => (steps.length > 0 ? { do: 'undo' } : null);
/** Starts an episode with the next higher seed, which was probably not played before. */
const another: Request = ({ seed }) => ({ do: 'restart', seed: seed + 1 });

interface RequestKey {
  readonly does: string;
  readonly request: Request;
}

/** The keys besides the keys of the environment's actions. */
export const requestKeys: Readonly<Record<string, RequestKey>> = {
  n: { does: 'New episode with the next seed', request: another },
  r: { does: 'Restart the episode', request: () => ({ do: 'restart' }) },
  u: { does: 'Undo', request: undo },
  Backspace: { does: 'Undo', request: undo },
  h: {
    does: 'Hint of the solver, if the environment has one',
    request: ({ has_solver, over }) => (has_solver && !over ? { do: 'hint' } : null),
  },
  S: {
    does: 'Let the solver play, if the environment has one',
    request: ({ has_solver, over }) => (has_solver && !over ? { do: 'solve' } : null),
  },
  l: { does: 'Load the code of the environment again', request: () => ({ do: 'reload' }) },
};

/**
 * Returns the request that a key sends. Returns undefined if no request is assigned to the key, and null if the request
 * is not possible now.
 */
export function requestOfKey(key: string, session: PlaySession): PlayDo | null | undefined {
  const named = session.actions.find(({ id }) => actionKeys(session.actions).get(id)!.includes(key));
  if (named) return action(named.id, session);
  return Object.hasOwn(requestKeys, key) ? requestKeys[key].request(session) : undefined;
}

/** Returns the request for an action, given by id or as a typed answer; null after the end of the episode. */
export const action = (chosen: number | string, { over }: PlaySession): PlayDo | null =>
  over ? null : { do: 'act', action: chosen };

/**
 * Returns the request for a new episode with a typed seed. Returns null if the text is not a seed. A seed has 1 to 15
 * digits.
 */
export const restartWith = (seed: string): PlayDo | null =>
  /^\d{1,15}$/.test(seed.trim()) ? { do: 'restart', seed: Number(seed) } : null;
