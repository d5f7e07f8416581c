// Makes each observation show the most recent states and the actions between them (Gymnasium's FrameStackObservation,
// for texts). Near the start of an episode, an observation shows fewer states; it is not padded. In an environment with
// roles, an observation shows only states that its role has seen.
import type { z } from 'zod';
import type { EnvironmentDefinition, Observation } from '../environment';
import { actionNames, actionText, after, imagesOf, observationOf, textOf, wrap } from './wrap';

/** One of the states in an observation. */
export interface Frame {
  /** Number of steps taken before this state; 0 is the state after the reset. */
  step: number;
  /**
   * The action that led to this state, as the model writes it; with roles, the last action of the role that sees it.
   * Undefined for the state after the reset, and for the first state of a role.
   */
  action?: string;
  text: string;
}

export interface FrameHistoryOptions {
  /** Maximum number of states in an observation, including the current state; an integer of at least 1. */
  frames: number;
  /** Joins the states, oldest first, into one text; the order of `<image>` placeholders must not change. */
  join?: (frames: readonly Frame[]) => string;
}

/** The default `join`. Writes `State 0:` and the state, then `Action 1: Left`, `State 1:` and the state, and so on. */
const numbered = (frames: readonly Frame[]): string =>
  frames
    .map(({ step, action, text }, i) => `${i > 0 ? `Action ${step}: ${action}\n` : ''}State ${step}:\n${text}`)
    .join('\n');

/**
 * @throws RangeError if `frames` is not an integer of at least 1
 */
export function withFrameHistory<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  { frames, join = numbered }: FrameHistoryOptions,
): EnvironmentDefinition<Schema> {
  if (!Number.isInteger(frames) || frames < 1)
    throw new RangeError(`withFrameHistory: frames is ${frames}: give it an integer of at least 1`);
  return wrap(definition, (inner, config) => {
    /** The last states by role; without roles, under undefined. */
    const seenBy = new Map<string | undefined, (Frame & { images: Uint8Array[] })[]>();
    /** The role whose turn it is, and the last action of each role. */
    let acting: string | undefined;
    const last = new Map<string | undefined, string>();
    let step = 0;
    let names = actionNames(definition, config);
    const show = (observation: Observation, role: string | undefined): Observation => {
      acting = role;
      const frame = { step, action: last.get(role), text: textOf(observation), images: imagesOf(observation) };
      const seen = [...(seenBy.get(role) ?? []), frame].slice(-frames);
      seenBy.set(role, seen);
      return observationOf(
        join(seen),
        seen.flatMap(({ images }) => images),
      );
    };
    return {
      reset: options =>
        after(inner.reset(options), begun => {
          seenBy.clear();
          last.clear();
          step = 0;
          names = begun.actions ?? actionNames(definition, config);
          return { ...begun, observation: show(begun.observation, begun.role) };
        }),
      step: action =>
        after(inner.step(action), result => {
          last.set(acting, actionText(action, names));
          if (result.role !== undefined) names = result.actions ?? names;
          step++;
          return { ...result, observation: show(result.observation, result.role) };
        }),
    };
  });
}
