// The returns of a batch by role, for everything that compares scores: normalisation, the rollout filter, groups of
// samples. Pure. A return is compared with those of the same role in the same group.
import { mostRoles } from '../../protocol/environment-message-bounds';
import type { RoleReturn } from '../../run-data/role-return';
import type { RolloutEpisode } from './rollout-batch';

/** One return of an episode: that of a role or, without roles, that of the episode. */
export interface EpisodeReturn {
  episode: RolloutEpisode;
  role: string | undefined;
  /** Id of the returns with which this one is compared: those of the group or, with roles, of the role in the group. */
  group: number;
  /** The tag and, with roles, the role. */
  tag: string;
  score: number;
  success: boolean;
}

/**
 * Returns an id for a role of a group or of an episode: for the first role and without roles, the given id (at least
 * 0), for other roles a negative id. Different pairs have different ids.
 */
export const roleId = (id: number, role: number): number => (role <= 0 ? id : -(id * mostRoles + role));

/** Returns the index of a role among the roles of its episode; 0 without roles. */
export const roleIndex = ({ roles }: Pick<RolloutEpisode, 'roles'>, role: string | undefined): number =>
  roles && role !== undefined ? Object.keys(roles).indexOf(role) : 0;

/** Whether the policy had a turn in a role, so that the role is trained. */
const isPlayed = ({ turns, player }: Pick<RoleReturn, 'turns' | 'player'>): boolean =>
  turns > 0 && player === undefined;

/** Returns the returns of the episodes, in order. A role without a turn of the policy has no return. */
export function returnsOf(episodes: readonly RolloutEpisode[]): EpisodeReturn[] {
  return episodes.flatMap((episode): EpisodeReturn[] => {
    const { group_id, tag, score, success, roles } = episode;
    if (!roles) return [{ episode, role: undefined, group: group_id, tag, score, success }];
    return Object.entries(roles).flatMap(([role, own], index) =>
      isPlayed(own)
        ? {
            episode,
            role,
            group: roleId(group_id, index),
            tag: `${tag}/${role}`,
            score: own.score,
            success: own.success,
          }
        : [],
    );
  });
}

/** Returns the score of each role that the policy plays in an episode, by name; undefined without roles. */
export function roleScoresOf(
  episode: RolloutEpisode,
  scoreOf: (episode: RolloutEpisode, role: string) => number,
): Record<string, number> | undefined {
  return (
    episode.roles &&
    Object.fromEntries(
      Object.entries(episode.roles).flatMap(([role, own]) => (isPlayed(own) ? [[role, scoreOf(episode, role)]] : [])),
    )
  );
}
