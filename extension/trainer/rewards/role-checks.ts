// Refuses settings that need one return per episode, for environments whose roles have returns of their own.
import { UserError } from '../../common/user-error';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { RunConfig } from '../config/schema';

/** @throws UserError if an environment with roles is to be trained with such a setting */
export function requireRoleSettings(
  loaded: readonly Pick<LoadedEnvironment, 'tag' | 'roles'>[],
  { algorithm, es_manager, workbench }: Pick<RunConfig, 'algorithm' | 'es_manager' | 'workbench'>,
): void {
  const { tags } = es_manager.train.env_configs;
  const found = loaded.find(({ tag, roles }) => roles && tags.includes(tag));
  if (!found) return;
  const { strategy } = workbench.trajectory_filter;
  const [setting, reason, remedy] =
    algorithm.adv_estimator === 'remax'
      ? ['algorithm.adv_estimator is remax', 'the greedy episode gives one baseline', 'set it to grpo or gae']
      : strategy !== 'none'
        ? [`workbench.trajectory_filter.strategy is ${strategy}`, 'the filter ranks episodes', 'set it to none']
        : [];
  if (setting !== undefined)
    throw new UserError(
      `config: ${setting}, but the environment ${found.tag} has roles with returns of their own, and ${reason}: ${remedy}`,
    );
}
