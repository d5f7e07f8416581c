// Refuses environment code whose reward components, answers or roles do not fit the configuration: at the start of a
// run with an error, and while a run trains like code that does not load.
import { UserError } from '../../common/user-error';
import type { LoadedEnvironment, PreparedEnvironment } from '../../protocol/environment-link';
import type { RunConfig, TagConfig } from '../config/schema';
import { componentProblem } from './reward-plan';
import { formatProblem } from './format-problem';
import { roleProblem, type RoleSettings } from './role-checks';

type TagConfigs = Pick<RunConfig, 'custom_envs'>;

function problemOf(environment: LoadedEnvironment, settings: TagConfig): string | undefined {
  return componentProblem(environment, settings.rewards) ?? formatProblem(environment, settings);
}

/** @throws UserError if the components of an environment do not fit its configuration */
export function requireComponents(loaded: readonly LoadedEnvironment[], { custom_envs }: TagConfigs): void {
  for (const environment of loaded) {
    const problem = problemOf(environment, custom_envs[environment.tag]);
    if (problem !== undefined) throw new UserError(problem);
  }
}

/** Returns new code as it is, or as refused code if its components, answers or roles do not fit the configuration. */
export function withComponentCheck(
  prepared: PreparedEnvironment,
  config: TagConfigs & RoleSettings,
): PreparedEnvironment {
  if (!('environment' in prepared)) return prepared;
  const { tag, files, environment } = prepared;
  const message = problemOf(environment, config.custom_envs[tag]) ?? roleProblem(environment, config);
  if (message === undefined) return prepared;
  return { tag, files, problems: [{ file: environment.source, line: 1, column: 1, message, kind: 'load' }] };
}
