// Bounds of the messages of an environment process, checked by the process and again by the trainer. If the process
// finds a value out of bounds, the episode to which the value belongs fails, and the value is not sent. If the trainer
// nevertheless receives a value out of bounds, environment code must have written to the channel, so the trainer ends
// the process. The size of each part and the size of the complete value are bounded, because many small parts can be as
// large as one large part.
import type { StateForms } from '../../envs/api/environment';
import { stateForms } from '../../envs/api/state-forms';
import { isRecord } from '../common/json';
import type { ToolCallRecord } from '../run-data/tool-call';

/**
 * Maximum characters of a text returned by an environment. This is also the maximum size of a structured value: the
 * number of its parts plus the number of characters in its texts and keys.
 */
export const largest = 2 ** 20;
/** Maximum bytes of the images of one observation. */
export const largestImages = 2 ** 26;
/** Maximum number of images of one observation. */
export const mostImages = 1024;
/** Maximum characters of an object key. */
export const longestKey = 4096;
/** Maximum characters of a message, a stack or a name. */
export const longestText = 2 ** 16;

type Plain = Record<string, unknown>;
export const isText = (value: unknown, most: number = largest): value is string =>
  typeof value === 'string' && value.length <= most;

/** Returns the problem of an episode's state, for example 'has invalid outcomes'; undefined if the state is valid. */
export function stateProblem(state: unknown): string | undefined {
  if (!isRecord(state)) return 'is not an object';
  const { episode, observation, version, info, actions, role, images, outcomes, components, true_state, error } = state;
  if (!isText(episode, longestText)) return 'names no episode';
  if (!isText(observation)) return 'has an observation that is missing, too long or not a text';
  if (!isText(version, 64)) return 'has no version';
  if (images !== undefined && !areImages(images)) return 'has images that are invalid or exceed the size limit';
  if (info !== undefined && !isInfo(info)) return 'has an "info" that is too large or not plain data';
  if (actions !== undefined && !areNames(actions))
    return 'has "actions" that are too long or do not map integers to names';
  if (role !== undefined && !isRole(role)) return 'names a role that is not valid';
  if (!isFailure(error)) return 'has an invalid "error"';
  if (true_state !== undefined && !isText(true_state)) return 'has a true state that is too long or not a text';
  if (components !== undefined && !areComponents(components)) return 'has reward components that are not numbers';
  if (outcomes !== undefined && !(Array.isArray(outcomes) && outcomes.every(isOutcome))) return 'has invalid outcomes';
  return undefined;
}

function areImages(images: unknown): boolean {
  if (!Array.isArray(images) || images.length > mostImages) return false;
  if (!images.every(image => image instanceof Uint8Array)) return false;
  return images.reduce((sum, { length }) => sum + length, 0) <= largestImages;
}

function isOutcome(outcome: unknown): boolean {
  if (!isRecord(outcome)) return false;
  const { action, reward, terminated, truncated, info, calls, roles } = outcome;
  const done = typeof terminated === 'boolean' && typeof truncated === 'boolean';
  const sound = isAction(action) && typeof reward === 'number' && Number.isFinite(reward) && done && isInfo(info);
  return sound && (calls === undefined || areCalls(calls)) && (roles === undefined || areRoleOutcomes(roles));
}

/** Whether a value is a list of tool calls within bounds. */
function areCalls(calls: unknown): calls is ToolCallRecord[] {
  if (!Array.isArray(calls)) return false;
  return calls.every(call => {
    if (!isRecord(call)) return false;
    const { name, result, error, ms } = call;
    const timed = typeof ms === 'number' && ms >= 0 && Number.isFinite(ms);
    return isText(name, longestKey) && isInfo(call.arguments) && isText(result) && typeof error === 'boolean' && timed;
  });
}

/** Maximum number of roles of an environment. */
export const mostRoles = 16;

/** Whether a value is the name of a role. */
export const isRole = (name: unknown): name is string => typeof name === 'string' && /^[\w-]{1,32}$/.test(name);

/** Whether a value is a list of roles within bounds, with different names. */
export function areRoles(roles: unknown): boolean {
  if (!Array.isArray(roles) || roles.length === 0 || roles.length > mostRoles) return false;
  const sound = (role: unknown): boolean =>
    isRecord(role) && isRole(role.name) && (role.instruction === undefined || isText(role.instruction));
  return roles.every(sound) && new Set(roles.map((role: Plain) => role.name)).size === roles.length;
}

/** Whether a value maps names of roles to rewards and successes. */
export function areRoleOutcomes(outcomes: unknown): boolean {
  if (!isRecord(outcomes)) return false;
  const entries = Object.entries(outcomes);
  return (
    entries.length <= mostRoles &&
    entries.every(([name, outcome]) => {
      if (!isRole(name) || !isRecord(outcome)) return false;
      const { reward, success } = outcome;
      const finite = reward === undefined || (typeof reward === 'number' && Number.isFinite(reward));
      return finite && (success === undefined || typeof success === 'boolean');
    })
  );
}

/** Whether a value is a valid action: a number or a text. */
export const isAction = (action: unknown): action is number | string =>
  isText(action) || (typeof action === 'number' && Number.isFinite(action));

/** Whether a value maps integer ids to names and has a size of at most `largest`. */
export function areNames(names: unknown): names is Record<number, string> {
  if (!isRecord(names)) return false;
  let room = largest;
  for (const [id, name] of Object.entries(names)) {
    if (!Number.isInteger(Number(id)) || typeof name !== 'string') return false;
    if ((room -= 1 + id.length + name.length) < 0) return false;
  }
  return true;
}

/** Maximum number of reward components of an environment, and maximum characters of a component's name. */
export const mostComponents = 64;
export const longestComponent = 64;

/** Whether a value maps at most `mostComponents` short names to finite numbers. */
export function areComponents(values: unknown): values is Record<string, number> {
  if (!isRecord(values)) return false;
  const entries = Object.entries(values);
  return (
    entries.length <= mostComponents &&
    entries.every(([name, value]) => name.length <= longestComponent && Number.isFinite(value))
  );
}

/** Whether a value maps forms of states to texts of at most `longestText` characters. */
export const areStateForms = (forms: unknown): forms is StateForms =>
  isRecord(forms) &&
  Object.entries(forms).every(([form, text]) => stateForms.some(one => one === form) && isText(text, longestText));

/** Whether a value is an object of plain data whose size is at most `largest`. */
export const isInfo = (info: unknown): info is Plain =>
  isRecord(info) && !(info instanceof Uint8Array) && fits(info, { left: largest }, 0);

/**
 * Maximum nesting depth of an `info` value. The environment process itself permits less depth, so a correct process
 * never exceeds this limit.
 */
const deepest = 16;

function fits(value: unknown, room: { left: number }, depth: number): boolean {
  if (typeof value === 'string') return (room.left -= 1 + value.length) >= 0;
  if (--room.left < 0) return false;
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean') return true;
  if (typeof value !== 'object' || depth > deepest) return false;
  if (value instanceof Uint8Array) return (room.left -= value.length) >= 0;
  if (Array.isArray(value)) return value.every(item => fits(item, room, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const [key, item] of Object.entries(value)) {
    if (key.length > longestKey || (room.left -= key.length) < 0) return false;
    if (!fits(item, room, depth + 1)) return false;
  }
  return true;
}

const kinds = ['threw', 'timed_out', 'bad_value', 'died', 'build'];

/** Whether a value is a valid failure, or undefined. */
export function isFailure(error: unknown): boolean {
  if (error === undefined) return true;
  if (!isRecord(error)) return false;
  const { kind, message, at, config } = error;
  const known = typeof kind === 'string' && kinds.includes(kind);
  const placed = (at === undefined || isText(at, longestText)) && (config === undefined || isRecord(config));
  return known && isText(message, 4 * longestText) && placed;
}
