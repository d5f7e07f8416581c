// Checks the values that methods of an environment return: steps, observations, infos and solutions. Each value is
// copied, and read only once.
import { types } from 'node:util';
import type { NextTurn } from '../../../../envs/api/roles';
import { largest, largestImages, mostImages } from '../../../protocol/environment-message-bounds';
import { badValue } from '../threads/fault';
import { bytesOf, copied, elementsOf, isNotPlain, plainValue, shown } from './returned-values';
import { callsIn } from '../tools/tool-environment';
import type { RoleDescription } from '../../../protocol/environment-link';
import { checkedRoleOutcomes, checkedTurn } from './returned-roles';
import type { Outcome, WorkResult } from '../threads/worker-messages';

/** A checked step; `next` is the turn that follows it in an environment with roles. */
interface CheckedStep extends Outcome {
  observation: unknown;
  next?: NextTurn;
}

/**
 * Checks and copies what `step` returned.
 * @param declared the roles of the environment; without roles, what the step says about roles is not read
 * @throws FaultError if a value is invalid
 */
export function checkedStep(
  step: unknown,
  action: number | string,
  declared?: readonly RoleDescription[],
): CheckedStep {
  const shape = 'return { observation, reward, terminated, truncated, info } from step';
  if (step === null || typeof step !== 'object') throw badValue(`returned ${shown(step)}`, shape);
  const { observation, reward, terminated, truncated, info } = step as Record<string, unknown>;
  if (typeof reward !== 'number' || !Number.isFinite(reward))
    throw badValue(`returned the reward ${shown(reward)}`, 'return a finite number as the reward');
  if (typeof terminated !== 'boolean') throw badValue(`returned ${shown(terminated)} as terminated`, shape);
  if (typeof truncated !== 'boolean') throw badValue(`returned ${shown(truncated)} as truncated`, shape);
  const calls = callsIn(step);
  const checked = { action, reward, terminated, truncated, info: checkedInfo(info), ...(calls && { calls }) };
  if (!declared) return { ...checked, observation };
  const roles = checkedRoleOutcomes((step as { roles?: unknown }).roles, declared);
  const next = checkedTurn(step, declared, terminated || truncated);
  return { ...checked, ...(roles && { roles }), observation, next };
}

/** Checks an observation and sets it in `result`. @throws FaultError if it is invalid */
export function setObservation(observation: unknown, result: Partial<WorkResult>): void {
  const { text, images } = (typeof observation === 'string' ? { text: observation } : (observation ?? {})) as {
    text?: unknown;
    images?: unknown;
  };
  if (typeof text !== 'string')
    throw badValue(
      `returned the observation ${shown(observation)}`,
      'return a text, or { text, images }, as the observation',
    );
  if (text.length > largest)
    throw badValue(`returned an observation of ${text.length} characters`, `return at most ${largest} characters`);
  const pictures = images === undefined ? undefined : checkedImages(images);
  result.observation = text;
  if (pictures) result.images = pictures;
}

function checkedImages(images: unknown): Uint8Array[] {
  const noBytes = () =>
    badValue('returned images that are not byte arrays', 'return PNG bytes as Uint8Array in images');
  if (!Array.isArray(images)) throw noBytes();
  const { length } = images;
  if (length > mostImages) throw badValue(`returned ${length} images`, `return at most ${mostImages} images`);
  let bytes = 0;
  return copied(images, length, (_, image) => {
    if (!types.isUint8Array(image)) throw noBytes();
    bytes += elementsOf(image);
    if (bytes > largestImages)
      throw badValue(`returned ${bytes} bytes of images`, `return at most ${largestImages} bytes`);
    return bytesOf(image);
  });
}

/** Checks and copies an info. @throws FaultError if it is no plain object */
export function checkedInfo(info: unknown): Record<string, unknown> {
  if (info === null || typeof info !== 'object' || Array.isArray(info))
    throw badValue(`returned ${shown(info)} as info`, 'return an object as info ({} if there is nothing to report)');
  try {
    return plainValue(info) as Record<string, unknown>;
  } catch (error) {
    if (!isNotPlain(error)) throw error; // the error comes from a getter in the info
    throw badValue(`returned an invalid info: ${error.message}`, 'put only plain data into info');
  }
}

/** Checks what `state` returned. @throws FaultError if it is no text, or too long */
export function checkedState(state: unknown): string {
  if (typeof state !== 'string') throw badValue(`returned ${shown(state)} from state`, 'return a text');
  if (state.length > largest)
    throw badValue(`returned a state of ${state.length} characters`, `return at most ${largest} characters`);
  return state;
}

/** Checks and copies what `solve` returned. @throws FaultError if a value is invalid */
export function solution(actions: unknown): (number | string)[] | undefined {
  if (actions === undefined) return undefined;
  const refused = () => badValue(`returned ${shown(actions)}`, 'return an array of actions, or nothing, from solve');
  if (!Array.isArray(actions)) throw refused();
  const { length } = actions;
  if (length > largest) throw badValue(`returned ${length} actions`, `return at most ${largest} actions from solve`);
  let room = largest;
  return copied(actions, length, (_, action) => {
    if (typeof action !== 'string' && !(typeof action === 'number' && Number.isFinite(action))) throw refused();
    room -= typeof action === 'string' ? action.length : 1;
    if (room < 0)
      throw badValue(`returned actions of more than ${largest} characters`, 'return shorter actions from solve');
    return action;
  });
}
