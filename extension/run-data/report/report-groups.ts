// The groups of a report's runs, which its tables compare and its charts draw together.
import { groupRuns } from '../compared-runs';
import type { ReportedRun } from './reported-run';

/** Groups runs as Compare does. If labels of groups are equal, the id of the first run follows each of them. */
export function reportGroups(runs: readonly ReportedRun[]): ReturnType<typeof groupRuns> {
  const { groups, keys } = groupRuns(runs);
  const isShared = (label: string): boolean => groups.filter(group => group.label === label).length > 1;
  return {
    groups: groups.map(group =>
      isShared(group.label) ? { ...group, label: `${group.label} (${runs[group.members[0]].manifest.id})` } : group,
    ),
    keys,
  };
}
