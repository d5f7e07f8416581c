// Ends an episode after a number of steps (Gymnasium's TimeLimit). The episode is truncated, unless it terminates in
// the same step.
import type { z } from 'zod';
import type { EnvironmentDefinition } from '../environment';
import { after, wrap } from './wrap';

/**
 * @param maxSteps maximum number of steps of an episode: an integer of at least 1, or a function that computes it from
 * the configuration. Invalid actions count as steps
 * @throws RangeError when an environment is created, if the maximum is not an integer of at least 1
 */
export function withTimeLimit<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  { maxSteps }: { maxSteps: number | ((config: z.infer<Schema>) => number) },
): EnvironmentDefinition<Schema> {
  return wrap(definition, (inner, config) => {
    const limit = typeof maxSteps === 'number' ? maxSteps : maxSteps(config);
    if (!Number.isInteger(limit) || limit < 1)
      throw new RangeError(`withTimeLimit: maxSteps is ${limit}: give it an integer of at least 1`);
    let steps = 0;
    return {
      reset(options) {
        steps = 0;
        return inner.reset(options);
      },
      step: action =>
        after(inner.step(action), result => {
          steps++;
          const truncated = !result.terminated && (result.truncated || steps >= limit);
          return { ...result, truncated };
        }),
    };
  });
}
