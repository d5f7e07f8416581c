// What the roles of an episode have earned. A sum over the roles is never shown, because it has no meaning in a game in
// which one wins what the other loses. Names come from environment code; they are inserted as plain text.
import type { RoleReturn } from '../../extension/run-data/role-return';
import { formatSigned } from '../shared/format';

type Returns = Readonly<Record<string, Pick<RoleReturn, 'reward' | 'score' | 'success'>>>;

/** Returns the outcome of each role in one line: `first ✓ return +1, score +1 · second ✗ return −1, score −1`. */
export const rolesOutcome = (roles: Returns): string =>
  Object.entries(roles)
    .map(
      ([role, { reward, score, success }]) =>
        `${role} ${success ? '✓' : '✗'} return ${formatSigned(reward)}, score ${formatSigned(score)}`,
    )
    .join(' · ');

/** Returns the score of an episode: `score +1` or, with roles, `first +1 · second −1`. */
export const scoreText = ({ score, roles }: { score: number; roles?: Returns }): string =>
  roles
    ? Object.entries(roles)
        .map(([role, own]) => `${role} ${formatSigned(own.score)}`)
        .join(' · ')
    : `score ${formatSigned(score)}`;
