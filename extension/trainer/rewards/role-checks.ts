// Whether an environment with roles can be played with the configuration. Refused are prompts with a summary, models
// behind APIs for roles that do not exist or for all roles, and in training the settings that need one return per
// episode, because roles have returns of their own.
import { UserError } from '../../common/user-error';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { RunConfig, TagConfig } from '../config/schema';

type Declared = Pick<LoadedEnvironment, 'tag' | 'name' | 'roles'>;
export type RoleSettings = Pick<RunConfig, 'agent_proxy' | 'algorithm' | 'custom_envs' | 'es_manager' | 'workbench'>;

/** Returns why an environment with roles cannot be played, as one sentence; undefined if it can. */
export function roleProblem(environment: Declared, config: RoleSettings): string | undefined {
  const { tag, roles } = environment;
  const problem = playerProblem(environment, config.custom_envs[tag]);
  if (problem !== undefined || !roles) return problem;
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

/** Returns why the models that are to play roles of an environment cannot; undefined if they can. */
function playerProblem({ tag, name, roles }: Declared, settings: Pick<TagConfig, 'roles'>): string | undefined {
  const players = Object.keys(settings.roles ?? {});
  if (players.length === 0) return undefined;
  const at = `config: custom_envs.${tag}.roles`;
  if (!roles) return `${at} has ${players[0]}, but environment ${name} has no roles: set it to null`;
  const names = roles.map(role => role.name);
  const unknown = players.find(role => !names.includes(role));
  if (unknown !== undefined)
    return `${at} has ${unknown}, which is no role of environment ${name}: use one of ${names.join(', ')}`;
  return names.every(role => players.includes(role))
    ? `${at} has all roles of environment ${name}, so no role is left to the policy: remove one of ${names.join(', ')}`
    : undefined;
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
