// Rollout filters of the workspace: calls a filter in the process of plug-ins, and checks the scores and indices that it
// returns.
import type { FilterSettings, PromptGroup } from '../../../envs/api/plugins/filter';
import { badValue, checkedNumbers, shown, type CallablePlugin } from './checked-values';

/** Scores of groups in batch order, and the indices of the selected groups if the filter selects them itself. */
export interface PluginSelection {
  scores: Float32Array;
  selected?: readonly number[];
}

/** Whether a filter of the workspace declares that it needs entropies. @throws PluginError for another value of `needs` */
export function needsEntropy({ path, description: { properties } }: CallablePlugin): boolean {
  const { needs } = properties;
  if (needs === undefined || needs === 'entropy') return needs === 'entropy';
  throw badValue(
    { path, function: 'defineFilter' },
    `was given needs ${shown(needs)}`,
    "use needs: 'entropy', or leave it out",
  );
}

/** Filters groups by a plug-in. @throws PluginError if the filter fails or returns an invalid value */
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
