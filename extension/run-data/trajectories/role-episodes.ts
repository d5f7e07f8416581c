// The parts of an episode by role, for data sets: what a role saw, answered and earned (envs/api/roles.ts). A data set
// contains the context of each role by itself, because no model saw the contexts of two roles together. Pure.
import { appendAll } from '../../common/lists';
import type { Episode } from '../episode';

/** An episode, or the part of it that one role played. */
export interface RoleEpisode extends Episode {
  /** The role; undefined in an environment without roles. */
  readonly role?: string;
}

/**
 * Returns the episode itself or, with roles, one part for each role that had a turn, in the order of their declaration:
 * its messages, turns, samples and return. Turns keep their numbers in the episode. `final_state` is empty if another
 * role played the last turn, because the role did not see the state after it. Of the tokens, a part has the ids, the
 * mask and the log-probs.
 */
export function roleEpisodes(episode: Episode): RoleEpisode[] {
  const { roles } = episode;
  if (!roles) return [episode];
  return Object.entries(roles).flatMap(([role, { reward, penalty, score, success }]): RoleEpisode[] => {
    const turns = episode.turns.filter(turn => turn.role === role);
    if (turns.length === 0) return [];
    const messages = episode.messages.filter(({ name }) => name === role);
    return [
      {
        ...episode,
        ...{ role, reward, penalty, score, success },
        ...(episode.component_reward !== undefined && { component_reward: score - reward - penalty }),
        messages: messages.map(({ role, content }) => ({ role, content })),
        ...samplesOf(episode, turns),
        final_state: episode.turns.at(-1)!.role === role ? episode.final_state : '',
      },
    ];
  });
}

/** Returns the samples that contain the given turns, one after the other, and the turns at their new positions. */
function samplesOf({ tokens }: Episode, turns: Episode['turns']): Pick<Episode, 'tokens' | 'turns'> {
  const { starts = [0] } = tokens;
  const ids: number[] = [];
  const mask: (0 | 1)[] = [];
  const logprobs: (number | null)[] = [];
  const begins: number[] = [];
  const moved = new Map<Episode['turns'][number], [number, number]>();
  starts.forEach((from, index) => {
    const to = starts[index + 1] ?? tokens.ids.length;
    const own = turns.filter(({ span }) => span[1] > span[0] && span[0] >= from && span[0] < to);
    if (own.length === 0) return;
    const at = ids.length;
    begins.push(at);
    for (const turn of own) moved.set(turn, [turn.span[0] - from + at, turn.span[1] - from + at]);
    appendAll(ids, tokens.ids.slice(from, to));
    appendAll(mask, tokens.mask.slice(from, to));
    appendAll(logprobs, tokens.logprobs.slice(from, to));
  });
  return {
    turns: turns.map(turn => ({ ...turn, span: moved.get(turn) ?? [0, 0] })),
    tokens: { ids, mask, logprobs, ...(begins.length > 1 && { starts: begins }) },
  };
}
