// Ends an episode after so many steps (Gymnasium's TimeLimit). The end is a truncation, unless the task ended with that very step.
import type { z } from 'zod';
import type { EnvironmentDefinition } from '../environment';
import { after, wrap } from './wrap';

/**
 * @param maxSteps steps an episode has, invalid ones included; a whole number from 1 on, or what gives one for a configuration
 * @throws RangeError for another number, when an environment is made
 */
export function withTimeLimit<Schema extends z.ZodType>(
  definition: EnvironmentDefinition<Schema>,
  { maxSteps }: { maxSteps: number | ((config: z.infer<Schema>) => number) },
): EnvironmentDefinition<Schema> {
  return wrap(definition, (inner, config) => {
    const limit = typeof maxSteps === 'number' ? maxSteps : maxSteps(config);
    if (!Number.isInteger(limit) || limit < 1)
      throw new RangeError(`withTimeLimit: maxSteps is ${limit}: give it a whole number from 1 on`);
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
