// Rollout filters of the workspace: scores the prompt groups of a batch and, if the filter has `select`, selects those to
// train on. Otherwise the strategy of the configuration selects groups by these scores.
import type { FilterSettings, PromptGroup } from '../../../envs/api/plugins/filter';
import { membersByGroup } from '../../algorithms/group-statistics';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { deriveSeed } from '../rollout/seeds';
import { badValue, checkedNumbers, shown, type CallablePlugin } from './checked-values';
import { playedEpisode } from './played-episode';

/** Scores of groups in batch order, and the indices of the selected groups if the filter selects them itself. */
export interface PluginSelection {
  scores: Float32Array;
  selected?: readonly number[];
}

/** Returns the groups of a batch. */
function promptGroups(episodes: readonly RolloutEpisode[], scores: ArrayLike<number>): PromptGroup[] {
  return [...membersByGroup(episodes.map(e => e.group_id)).values()].map(members => {
    const [{ group_id: group, tag, seed }] = members.map(index => episodes[index]);
    return { group, tag, seed, episodes: members.map(index => playedEpisode(episodes[index], scores[index])) };
  });
}

/**
 * Filters the groups of a batch of episodes.
 * @param scores the scores of the episodes, which may be normalised
 * @param seed the seed of the training (`seed.train`)
 * @throws PluginError if the filter fails or returns an invalid value
 */
export function selectionOf(
  plugin: CallablePlugin,
  episodes: readonly RolloutEpisode[],
  scores: ArrayLike<number>,
  seed: number,
): Promise<PluginSelection> {
  const groups = promptGroups(episodes, scores);
  const [{ step } = { step: 0 }] = episodes;
  const drawn = deriveSeed('filter', seed, step, ...groups.map(group => group.seed));
  return filterWith(plugin, groups, { step, seed: drawn });
}

/** Filters groups. @throws PluginError if the filter fails or returns an invalid value */
export async function filterWith(
  plugin: CallablePlugin,
  groups: readonly PromptGroup[],
  settings: FilterSettings,
): Promise<PluginSelection> {
  const { path, description } = plugin;
  const value = await plugin.call('score', groups, settings);
  const of = (group: number) => `group ${group}`;
  const called = { path, function: 'score' };
  const scores = checkedNumbers(called, value, new Float32Array(groups.length), 'scores', of);
  if (!description.functions.includes('select')) return { scores };
  const selected = await plugin.call('select', scores, groups, settings);
  return { scores, selected: checkedIndices({ path, function: 'select' }, selected, groups.length) };
}

function checkedIndices(called: Parameters<typeof badValue>[0], value: unknown, count: number): number[] {
  const remedy = `return distinct indices of groups, from 0 to ${count - 1}`;
  if (!Array.isArray(value)) throw badValue(called, `returned ${shown(value)}`, remedy);
  const indices: unknown[] = value;
  return indices.map((index, i) => {
    if (!Number.isInteger(index) || Number(index) < 0 || Number(index) >= count || indices.indexOf(index) !== i)
      throw badValue(called, `returned ${shown(index)} as the index of a group`, remedy);
    return Number(index);
  });
}
