// The curriculum of a run (algorithms/curriculum.ts): the groups of the next step by tag, and the state, metrics and
// events of a finished step. Does nothing unless `workbench.curriculum` is set.
import { afterEpisodes, difficultyOf, mixedGroups, type CurriculumState } from '../../algorithms/curriculum';
import type { RunConfig } from '../config/schema';
import type { EnvGroups } from '../rollout/group-layout';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import type { Journal } from '../run/journal';

type CurriculumConfig = Pick<RunConfig, 'es_manager' | 'workbench'>;

/** Value of `curriculum/<tag>/pool`. */
const poolNumber = { hard: 0, normal: 1, easy: 2 } as const;

/** Returns the groups of the next step; undefined without a curriculum. */
export function curriculumGroups(
  { es_manager, workbench }: CurriculumConfig,
  state: CurriculumState,
): EnvGroups | undefined {
  if (!workbench.curriculum) return undefined;
  const { tags, n_groups } = es_manager.train.env_configs;
  const mixed = mixedGroups(tags, n_groups, state, workbench.curriculum);
  return { ...es_manager.train, env_configs: { tags, n_groups: mixed } };
}

/**
 * Returns the state after a step and the step's metrics, and writes an event for each tag that moves to another pool.
 * @param trainable the step's training episodes that did not fail
 */
export function followCurriculum(
  { config, journal }: { config: CurriculumConfig; journal: Pick<Journal, 'event'> },
  state: CurriculumState,
  trainable: readonly Pick<RolloutEpisode, 'tag' | 'success' | 'group_id'>[],
): { state: CurriculumState; metrics: Record<string, number> } {
  const options = config.workbench.curriculum;
  if (!options) return { state, metrics: {} };
  const { state: next, moves } = afterEpisodes(state, trainable, options);
  for (const { tag, from, to, success } of moves)
    journal.event(
      'setting',
      `${tag} moves from the difficulty pool ${from} to ${to}: ${(100 * success).toFixed(0)} % of its episodes succeed (workbench.curriculum)`,
    );
  const metrics: Record<string, number> = { 'curriculum/easy': 0, 'curriculum/normal': 0, 'curriculum/hard': 0 };
  for (const tag of new Set(config.es_manager.train.env_configs.tags)) {
    const { success, pool } = difficultyOf(next, tag) ?? { pool: 'normal' };
    metrics[`curriculum/${pool}`]++;
    metrics[`curriculum/${tag}/pool`] = poolNumber[pool];
    metrics[`curriculum/${tag}/groups`] = new Set(
      trainable.filter(episode => episode.tag === tag).map(({ group_id }) => group_id),
    ).size;
    if (success !== undefined) metrics[`curriculum/${tag}/success`] = success;
  }
  return { state: next, metrics };
}
