// The list's items in their order: steps (where there are several), prompt groups, and under each its episodes. Pure.
import type { EpisodeRow } from '../../extension/protocol/pages';

export type ListItem =
  | { kind: 'step'; key: string; step: number; mode: 'train' | 'val'; count: number }
  | {
      kind: 'group';
      key: string;
      tag: string;
      group_id: number;
      count: number;
      solved: number;
      std: number;
      kept: boolean | null;
    }
  | { kind: 'episode'; key: string; row: EpisodeRow };

/** Items of rows, newest step first, groups and members in order. A step gets a heading where several steps are shown. */
export function listItems(rows: readonly EpisodeRow[]): ListItem[] {
  const steps = groupBy(rows, row => `${row.step} ${row.mode}`);
  const ordered = [...steps.values()].sort(([a], [b]) => b.step - a.step || a.mode.localeCompare(b.mode));
  return ordered.flatMap(stepRows => {
    const { step, mode } = stepRows[0];
    const groups = [...groupBy(stepRows, row => row.group_id).values()].sort(([a], [b]) => a.group_id - b.group_id);
    const items = groups.flatMap(members => [groupItem(members), ...episodes(members)]);
    const heading: ListItem = { kind: 'step', key: `step ${mode} ${step}`, step, mode, count: stepRows.length };
    return ordered.length > 1 ? [heading, ...items] : items;
  });
}

/** The members of a row's prompt group, in order. */
export function membersOf(
  rows: readonly EpisodeRow[],
  of: Pick<EpisodeRow, 'step' | 'mode' | 'group_id'>,
): EpisodeRow[] {
  return rows
    .filter(row => row.step === of.step && row.mode === of.mode && row.group_id === of.group_id)
    .sort((a, b) => a.member - b.member);
}

function groupItem(members: EpisodeRow[]): ListItem {
  const { step, mode, group_id, tag, kept } = members[0];
  const solved = members.filter(row => row.success).length;
  const std = deviation(members.map(row => row.score));
  return {
    kind: 'group',
    key: `group ${mode} ${step} ${group_id}`,
    tag,
    group_id,
    count: members.length,
    solved,
    std,
    kept,
  };
}

function episodes(members: EpisodeRow[]): ListItem[] {
  return [...members].sort((a, b) => a.member - b.member).map(row => ({ kind: 'episode', key: row.id, row }));
}

/** Standard deviation with N − 1, as the rollout filter takes it; 0 for a single value. */
function deviation(values: number[]): number {
  if (values.length < 2) return 0;
  const mean = values.reduce((total, value) => total + value, 0) / values.length;
  return Math.sqrt(values.reduce((total, value) => total + (value - mean) ** 2, 0) / (values.length - 1));
}

function groupBy<T, K>(values: readonly T[], keyOf: (value: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group) group.push(value);
    else groups.set(keyOf(value), [value]);
  }
  return groups;
}
