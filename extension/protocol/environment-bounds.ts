// What messages of an environment process may hold, checked twice: in the process, where a value beyond it fails its own episode, and in
// the trainer, where it ends the process, since only a process whose channel was written to by somebody else can send it.
// Sums and lengths are checked, never only the parts: thousands of small values are as large as a large one.
import { isRecord } from './json';

/** Characters of a text, and parts of a value with the characters of its texts and keys, that an environment may hand out at a time. */
export const largest = 2 ** 20;
/** Bytes of the images of one observation. */
export const largestImages = 2 ** 26;
/** Characters of a key of an object. */
export const longestKey = 4096;
/** Characters of a sentence, a stack or a name that is passed on. */
export const longestText = 2 ** 16;

type Plain = Record<string, unknown>;
const isText = (value: unknown, most: number = largest): value is string =>
  typeof value === 'string' && value.length <= most;

/** What is wrong with an episode's state, as the rest of a sentence that begins with it; undefined where nothing is. */
export function stateProblem(state: unknown): string | undefined {
  if (!isRecord(state)) return 'is no object';
  const { episode, observation, version, info, actions, images, outcomes, error } = state;
  if (!isText(episode, longestText)) return 'names no episode';
  if (!isText(observation)) return 'has no observation within bounds';
  if (!isText(version, 64)) return 'has no version';
  if (images !== undefined && !areImages(images)) return 'has images that are none, or too many';
  if (info !== undefined && !isInfo(info)) return 'has an info that is no plain data within bounds';
  if (actions !== undefined && !areNames(actions)) return 'has actions that are no names within bounds';
  if (!isFailure(error)) return 'has an error that is none';
  if (outcomes !== undefined && !(Array.isArray(outcomes) && outcomes.every(isOutcome)))
    return 'has outcomes that are none';
  return undefined;
}

function areImages(images: unknown): boolean {
  if (!Array.isArray(images) || !images.every(image => image instanceof Uint8Array)) return false;
  return images.reduce((sum, { length }) => sum + 1 + length, 0) <= largestImages + images.length;
}

function isOutcome(outcome: unknown): boolean {
  if (!isRecord(outcome)) return false;
  const { action, reward, terminated, truncated, info } = outcome;
  const done = typeof terminated === 'boolean' && typeof truncated === 'boolean';
  return isAction(action) && typeof reward === 'number' && Number.isFinite(reward) && done && isInfo(info);
}

/** Whether a value is an id or a text that can stand for an action. */
export const isAction = (action: unknown): action is number | string =>
  isText(action) || (typeof action === 'number' && Number.isFinite(action));

/** Names by whole numbers. */
export function areNames(names: unknown): names is Record<number, string> {
  if (!isRecord(names)) return false;
  let room = largest;
  for (const [id, name] of Object.entries(names)) {
    if (!Number.isInteger(Number(id)) || typeof name !== 'string') return false;
    if ((room -= 1 + id.length + name.length) < 0) return false;
  }
  return true;
}

/** Whether a value is an object of plain data within the bounds of one info. */
const isInfo = (info: unknown): info is Plain =>
  isRecord(info) && !(info instanceof Uint8Array) && fits(info, { left: largest }, 0);

/** Levels of an info; those that the process lets pass are fewer. */
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

/** Whether a value is a failure, or nothing. */
export function isFailure(error: unknown): boolean {
  if (error === undefined) return true;
  if (!isRecord(error)) return false;
  const { kind, message, at, config } = error;
  const known = typeof kind === 'string' && kinds.includes(kind);
  const placed = (at === undefined || isText(at, longestText)) && (config === undefined || isRecord(config));
  return known && isText(message, 4 * longestText) && placed;
}
