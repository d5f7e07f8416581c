// Converts episodes to the form that plug-ins receive, without tokens.
import type { PlayedEpisode } from '../../../envs/api/plugins/played-episode';
import type { AnsweredTurn } from '../../../envs/api/rewards';
import { sampledTokens, type RolloutEpisode } from '../rollout/rollout-batch';

/** @param score the score of the episode, which may be normalised */
export function playedEpisode(episode: RolloutEpisode, score: number = episode.score): PlayedEpisode {
  const { id, tag, group_id: group, member, seed, terminated, truncated, success, reward, penalty } = episode;
  const tokens = sampledTokens(episode);
  const turns = episode.turns.map(answeredTurn);
  return { ...{ id, tag, group, member, seed, terminated, truncated, success, reward, penalty, score }, tokens, turns };
}

function answeredTurn(played: RolloutEpisode['turns'][number]): AnsweredTurn {
  const { turn, state, raw, thought, answer, parsed, executed, reward, info, finish, calls } = played;
  return { turn, state, raw, thought, answer, parsed, executed, reward, info, finish, ...(calls && { calls }) };
}
