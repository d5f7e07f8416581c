// The reward components of episodes in progress: which turns and episodes the environment's score functions score, and
// what the values of a turn earn. Pure.
import type { StateForm } from '../../../envs/api/state-forms';
import type { AnsweredEpisode, ComponentValues } from '../../../envs/api/rewards';
import type { EpisodeActions } from '../../protocol/environment-link';
import type { EpisodeTurn } from '../../run-data/episode';
import { weightedSum, type BuiltInTurn, type RewardPlan } from '../rewards/reward-plan';
import type { ParsedResponse } from './turn-protocol';

/** The part of an episode in progress on which its score depends. */
interface ScoredEpisode {
  id: string;
  /** The newest observation. */
  state: string;
  history: readonly Omit<EpisodeTurn, 'span'>[];
  terminated: boolean;
  truncated: boolean;
  success: boolean;
  stateForm?: StateForm;
  rewards?: RewardPlan;
}

/** A planned turn: the response and the actions to execute. */
interface PlannedAnswer {
  entry: ScoredEpisode;
  raw: string;
  response: ParsedResponse;
  finish: EpisodeTurn['finish'];
  actions: EpisodeActions['actions'];
}

/** Returns the request that plays a planned turn and, if the environment scores turns, asks for its score. */
export function stepRequest({ entry, raw, response, finish, actions }: PlannedAnswer): EpisodeActions {
  const asked = { episode: entry.id, actions, ...(entry.stateForm && { state_form: entry.stateForm }) };
  if (!entry.rewards?.scores.turn) return asked;
  const { thought, answer, actions: parsed } = response;
  const turn = { turn: entry.history.length + 1, state: entry.state, raw, thought, answer, parsed, finish };
  return { ...asked, score: { turn } };
}

/** Returns an episode as score functions and judges receive it. */
export function answered({ history, state, terminated, truncated, success }: ScoredEpisode): AnsweredEpisode {
  const turns = history.map(({ turn, state, raw, thought, answer, parsed, executed, reward, info, calls, finish }) => {
    const given = { turn, state, raw, thought, answer, parsed, executed, reward, info, finish };
    return calls ? { ...given, calls } : given;
  });
  return { turns, final_state: state, terminated, truncated, success };
}

/** Returns the component values of a turn, and their weighted sum. */
export function earnedBy(
  rewards: RewardPlan,
  turn: BuiltInTurn,
  own: ComponentValues = {},
): Pick<EpisodeTurn, 'components' | 'component_reward'> {
  const components = { ...own, ...rewards.builtIn(turn) };
  return { components, component_reward: weightedSum(rewards, components) };
}
