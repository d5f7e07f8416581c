// Environments whose calls return synchronously. The interface allows promises; a test that drops a promise would pass
// whatever the environment does, so these calls throw instead of returning a promise.
import { types } from 'node:util';
import type { z } from 'zod';
import type {
  Action,
  ConfigSchema,
  Environment,
  EnvironmentDefinition,
  MaybePromise,
  Observation,
  ResetOptions,
  StepResult,
} from '../../envs/api/environment';

export interface SyncEnvironment extends Environment {
  reset(options: ResetOptions): Exclude<ReturnType<Environment['reset']>, Promise<unknown>>;
  step(action: Action): StepResult;
  render?(mode: string): Observation;
  solve?(): Action[] | undefined;
}

/** Returns the environment of `definition` with `config`; its calls throw if they return a promise. */
export function createSync<Schema extends ConfigSchema>(
  definition: EnvironmentDefinition<Schema>,
  config: z.infer<Schema>,
): SyncEnvironment {
  const environment = definition.create(config);
  const immediate = <T>(value: MaybePromise<T>): T => {
    if (types.isPromise(value))
      throw new Error(`${definition.name}: a call returned a promise: use the asynchronous environment in this test`);
    return value;
  };
  return {
    reset: options => immediate(environment.reset(options)),
    step: action => immediate(environment.step(action)),
    ...(environment.render && { render: mode => immediate(environment.render!(mode)) }),
    ...(environment.solve && { solve: () => immediate(environment.solve!()) }),
  };
}
