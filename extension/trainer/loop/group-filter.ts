// Filters the prompt groups of a batch by a built-in filter or one of the workspace: scores the groups and, unless the
// filter selects them itself, selects them by the strategy of the configuration, on request among the groups of each tag.
import type { Filter, FilterEpisode, FilterSettings, PromptGroup } from '../../../envs/api/plugins/filter';
import { builtInFilters, type BuiltInFilter } from '../../algorithms/built-in-filters';
import { selectGroups, selectGroupsByTag } from '../../algorithms/group-selection';
import { membersByGroup } from '../../algorithms/group-statistics';
import type { ScoredSelection } from '../../algorithms/rollout-filter';
import { isPluginPath } from '../config/plugin-path';
import type { RunConfig } from '../config/schema';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { roleScoresOf } from '../rollout/role-returns';
import { deriveSeed } from '../rollout/seeds';
import { playedEpisode } from '../plugins/played-episode';
import { filterWith, needsEntropy, type PluginSelection } from '../plugins/plugin-filter';
import type { PluginSet } from '../plugins/plugin-set';

type RolloutSettings = RunConfig['actor_rollout_ref']['rollout'];

/** A filter that is called directly or, if it is the workspace's, in the process of plug-ins. */
export interface RunFilter extends Pick<BuiltInFilter, 'measured'>, Pick<Filter, 'needs'> {
  /** @throws PluginError if the filter is the workspace's, and fails or returns an invalid value */
  filter(groups: readonly PromptGroup[], settings: FilterSettings): Promise<PluginSelection>;
}

/** Returns the filter that `rollout_filter_metric` names. */
export function runFilter(
  { rollout_filter_metric: metric }: Pick<RolloutSettings, 'rollout_filter_metric'>,
  plugins: Pick<PluginSet, 'plugin'>,
): RunFilter {
  if (isPluginPath(metric)) {
    const plugin = plugins.plugin(metric);
    return {
      ...(needsEntropy(plugin) && { needs: 'entropy' }),
      filter: (groups, settings) => filterWith(plugin, groups, settings),
    };
  }
  const builtIn = builtInFilters[metric];
  return {
    ...builtIn,
    filter: (groups, settings) => Promise.resolve({ scores: Float32Array.from(builtIn.score(groups, settings)) }),
  };
}

/** What filters are shown of the episodes of a batch besides the record. */
export interface ShownValues {
  /** The score of an episode or of one of its roles, which may be normalised. */
  scoreOf: (episode: RolloutEpisode, role: string | undefined) => number;
  /** Mean entropy of an episode's sampled tokens; undefined if it was not computed. */
  entropyOf: (episode: RolloutEpisode) => number | undefined;
}

/** Returns the groups of a batch. @param seed the seed of the training (`seed.train`) */
export function promptGroups(
  episodes: readonly RolloutEpisode[],
  { scoreOf, entropyOf }: ShownValues,
  seed: number,
): PromptGroup[] {
  const shownEpisode = (episode: RolloutEpisode): FilterEpisode => {
    const entropy = entropyOf(episode);
    const roleScores = roleScoresOf(episode, scoreOf);
    return {
      ...playedEpisode(episode, episode.roles ? episode.score : scoreOf(episode, undefined)),
      ...(entropy !== undefined && { entropy }),
      ...(roleScores && { roleScores }),
    };
  };
  return [...membersByGroup(episodes.map(e => e.group_id)).values()].map(members => {
    const [{ group_id: group, tag, seed: own }] = members.map(index => episodes[index]);
    const draw = deriveSeed('rollout-filter', seed, own);
    return { group, tag, seed: own, draw, episodes: members.map(index => shownEpisode(episodes[index])) };
  });
}

/**
 * Filters the groups of a batch of step `step`.
 * @throws PluginError if the filter is the workspace's, and fails or returns an invalid value
 */
export async function selectionOf(
  filter: RunFilter,
  groups: readonly PromptGroup[],
  step: number,
  { seed, actor_rollout_ref: { rollout }, workbench }: RunConfig,
): Promise<ScoredSelection> {
  const drawn = deriveSeed('filter', seed.train, step, ...groups.map(group => group.seed));
  const { scores, selected } = await filter.filter(groups, { step, seed: drawn });
  if (selected) return { scores, selected };
  if (!workbench.filter_by_tag) return { scores, selected: selectGroups(scores, rollout) };
  const tags = groups.map(({ tag }) => tag);
  return { scores, selected: selectGroupsByTag(scores, tags, rollout) };
}
