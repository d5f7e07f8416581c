// Whether an environment with roles can be played with the configuration. Refused are prompts with a summary, and in
// training the settings that need one return per episode, because roles have returns of their own.
import { UserError } from '../../common/user-error';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { RunConfig } from '../config/schema';

type Declared = Pick<LoadedEnvironment, 'tag' | 'name' | 'roles'>;
export type RoleSettings = Pick<RunConfig, 'agent_proxy' | 'algorithm' | 'es_manager' | 'workbench'>;

/** Returns why an environment with roles cannot be played, as one sentence; undefined if it can. */
export function roleProblem(environment: Declared, config: RoleSettings): string | undefined {
  const { tag, roles } = environment;
  if (!roles) return undefined;
  const { agent_proxy, algorithm, es_manager, workbench } = config;
  if (agent_proxy.context_window_mode === 'single_turn') return summaryProblem(environment);
  if (!es_manager.train.env_configs.tags.includes(tag)) return undefined;
  const { strategy } = workbench.trajectory_filter;
  const [setting, reason, remedy] =
    algorithm.adv_estimator === 'remax'
      ? ['algorithm.adv_estimator is remax', 'the greedy episode gives one baseline', 'set it to grpo or gae']
      : strategy !== 'none'
        ? [`workbench.trajectory_filter.strategy is ${strategy}`, 'the filter ranks episodes', 'set it to none']
        : [];
  return setting === undefined
    ? undefined
    : `config: ${setting}, but the environment ${tag} has roles with returns of their own, and ${reason}: ${remedy}`;
}

/** Returns why an environment with roles cannot be played with prompts that summarise earlier turns. */
export const summaryProblem = ({ name }: Pick<LoadedEnvironment, 'name'>): string =>
  `config: agent_proxy.context_window_mode is single_turn, but environment ${name} has roles, whose contexts are chats: set it to full or limited_multi_turn`;

/** @throws UserError if an environment has roles that do not fit the configuration */
export function requireRoleSettings(loaded: readonly Declared[], config: RoleSettings): void {
  for (const environment of loaded) {
    const problem = roleProblem(environment, config);
    if (problem !== undefined) throw new UserError(problem);
  }
}
