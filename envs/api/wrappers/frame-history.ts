// The last states in each observation, with the actions between them (Gymnasium's FrameStackObservation, for texts: at the beginning of
// an episode there are fewer, and nothing is padded).
import type { z } from 'zod';
import type { EnvironmentDefinition, Observation } from '../environment';
import { actionNames, actionText, after, imagesOf, observationOf, textOf, wrap } from './wrap';

/** One of the states that are shown. */
export interface Frame {
  /** Steps taken when it was seen; 0 is the state after the reset. */
  step: number;
  /** The action that led to it, as the model writes it; undefined for the state after the reset. */
  action?: string;
  text: string;
}

export interface FrameHistoryOptions {
  /** States that are shown, the present one included: a whole number from 1 on. */
  frames: number;
  /** The text of the states, oldest first; `<image>` marks must stay in their order. */
  join?: (frames: readonly Frame[]) => string;
}

/** `State 0:` and the state, `Action 1: Left`, `State 1:` and the state, and so on. */
const numbered = (frames: readonly Frame[]): string =>
  frames
    .map(({ step, action, text }, i) => `${i > 0 ? `Action ${step}: ${action}\n` : ''}State ${step}:\n${text}`)
    .join('\n');

/** @throws RangeError where `frames` is no whole number from 1 on */
export function withFrameHistory<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  { frames, join = numbered }: FrameHistoryOptions,
): EnvironmentDefinition<Schema> {
  if (!Number.isInteger(frames) || frames < 1)
    throw new RangeError(`withFrameHistory: frames is ${frames}: give it a whole number from 1 on`);
  return wrap(definition, (inner, config) => {
    let seen: (Frame & { images: Uint8Array[] })[] = [];
    let names = actionNames(definition, config);
    const show = (step: number, observation: Observation, action?: string): Observation => {
      seen = [...seen, { step, action, text: textOf(observation), images: imagesOf(observation) }].slice(-frames);
      return observationOf(
        join(seen),
        seen.flatMap(({ images }) => images),
      );
    };
    return {
      reset: options =>
        after(inner.reset(options), begun => {
          seen = [];
          names = begun.actions ?? actionNames(definition, config);
          return { ...begun, observation: show(0, begun.observation) };
        }),
      step: action =>
        after(inner.step(action), result => ({
          ...result,
          observation: show((seen.at(-1)?.step ?? 0) + 1, result.observation, actionText(action, names)),
        })),
    };
  });
}
