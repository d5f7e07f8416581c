// Prompt groups of a training step for the Collapse page: from the step's episodes or, if the episodes were deleted,
// from the group table. Pure functions.
import type { PromptGroup } from '../../../protocol/collapse-page';
import type { EpisodeRow } from '../../../run-data/episode-table';
import type { GroupRow } from '../../../run-data/step-lines';

/**
 * Returns the prompt groups of a step from its episodes or, if these are missing, from its group table; null if both
 * are missing.
 */
export function promptGroups(episodes: readonly EpisodeRow[], table: readonly GroupRow[]): PromptGroup[] | null {
  if (episodes.length === 0 && table.length === 0) return null;
  if (episodes.length === 0)
    return table.map(({ group_id, tag, scores, selected }) => ({
      group_id,
      tag,
      kept: selected,
      episodes: scores.map((score, member) => ({ id: null, member, score, success: null, tokens: null })),
    }));
  const groups = new Map<number, PromptGroup>();
  for (const { group_id, tag, id, member, score, success, tokens, kept } of episodes) {
    const group = groups.get(group_id) ?? { group_id, tag, kept: null, episodes: [] };
    groups.set(group_id, group);
    group.episodes.push({ id, member, score, success, tokens });
    if (kept !== null) group.kept = kept || (group.kept ?? false);
  }
  for (const { episodes: members } of groups.values()) members.sort((a, b) => a.member - b.member);
  return [...groups.values()].sort((a, b) => a.group_id - b.group_id);
}
