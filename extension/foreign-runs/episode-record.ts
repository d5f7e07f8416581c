// Converts a rollout of another trainer to an episode record (run-data/episode.ts). Each response of the policy is one
// turn; the messages since the last response are the turn's state. If the trainer stores no rewards of turns, the last
// turn gets the whole reward. Where the trainer stores no token ids, `tokens` is empty: nothing is computed in their
// place.
import type { Episode, EpisodeTurn } from '../run-data/episode';
import { episodeId, textHash } from '../run-data/episode-index-line';
import type { ChatMessage, ForeignEpisode } from './adapter';
import { noTokens } from './adapter';
import { parsedResponse } from './chat-turns';

/** Maximum characters of an episode's error. */
const mostErrorLength = 10_000;

export interface EpisodePlace {
  mode: 'train' | 'val';
  step: number;
  group_id: number;
  member: number;
  /** Number of the episode within its file. */
  env_id: number;
}

/** Returns the record of a rollout. */
export function episodeRecord(rollout: ForeignEpisode, place: EpisodePlace): Episode {
  const { mode, step, group_id, member, env_id } = place;
  const { reward, tag } = rollout;
  const { turns, final_state, final_pictures } = turnsOf(rollout);
  return {
    id: episodeId(place),
    ...{ step, mode, group_id, member, env_id, tag },
    environment: { name: tag, version: '' },
    seed: rollout.seed ?? promptNumber(turns[0]?.state ?? ''),
    terminated: rollout.terminated ?? false,
    truncated: rollout.truncated ?? false,
    success: rollout.success,
    ...{ reward, penalty: 0, score: reward },
    advantage: rollout.advantage ?? meanAdvantage(rollout.messages),
    kept: mode === 'val' ? null : (rollout.kept ?? null),
    turns,
    final_state,
    ...(final_pictures.length > 0 && { final_pictures }),
    metrics: rollout.metrics ?? {},
    ...(rollout.error !== undefined && { error: rollout.error.slice(0, mostErrorLength) }),
    messages: rollout.messages.map(({ role, content, reasoning }) => ({
      role,
      content: reasoning === undefined ? content : `<think>${reasoning}</think>${content}`,
    })),
    tokens: tokensOf(rollout.messages),
  };
}

/** Returns a number that identifies a prompt, for trainers that store no seed. */
const promptNumber = (state: string): number => textHash(state) % 2 ** 31;

const isSampled = ({ role, sampled }: ChatMessage): boolean => sampled ?? role === 'assistant';

interface Turns {
  turns: EpisodeTurn[];
  final_state: string;
  final_pictures: (string | null)[];
}

function turnsOf({ messages, reward }: ForeignEpisode): Turns {
  const turns: EpisodeTurn[] = [];
  const hasRewards = messages.some(message => message.reward !== undefined);
  let state: string[] = [];
  let pictures: (string | null)[] = [];
  let token = 0;
  for (const message of messages) {
    const length = message.tokens?.ids.length ?? 0;
    if (isSampled(message)) {
      const { thought, answer } = parsedResponse(message);
      const actions = answer === null ? [] : [answer];
      const first = message.tokens?.mask.indexOf(true) ?? -1;
      turns.push({
        turn: turns.length + 1,
        state: state.join('\n\n'),
        ...(pictures.length > 0 && { pictures }),
        actions_left: null,
        raw:
          message.reasoning === undefined ? message.content : `<think>${message.reasoning}</think>${message.content}`,
        ...{ thought, answer, parsed: actions, executed: actions },
        ...{ reward: message.reward ?? 0, penalty: 0, info: {}, finish: 'stop' },
        span: first < 0 ? [0, 0] : [token + first, token + (message.tokens?.mask.lastIndexOf(true) ?? 0) + 1],
      });
      [state, pictures] = [[], []];
    } else if (message.role !== 'system' || turns.length > 0) {
      state.push(message.content);
      pictures = [...pictures, ...(message.pictures ?? [])];
    }
    token += length;
  }
  if (!hasRewards && turns.length > 0) turns[turns.length - 1].reward = reward;
  return { turns, final_state: state.join('\n\n'), final_pictures: pictures };
}

/** Joins the tokens of the messages; empty if any response of the policy has none. */
function tokensOf(messages: readonly ChatMessage[]): Episode['tokens'] {
  const isComplete = messages.every(message => !isSampled(message) || (message.tokens?.ids.length ?? 0) > 0);
  if (!isComplete || messages.length === 0) return noTokens;
  const tokens: Episode['tokens'] & { advantages: number[] } = { ids: [], mask: [], logprobs: [], advantages: [] };
  let hasAdvantages = true;
  for (const { tokens: own } of messages) {
    if (!own) continue;
    let sampled = 0;
    own.ids.forEach((id, i) => {
      const isOwn = own.mask[i] ?? false;
      tokens.ids.push(id);
      tokens.mask.push(isOwn ? 1 : 0);
      tokens.logprobs.push(isOwn ? (own.logprobs[sampled] ?? null) : null);
      tokens.advantages.push(isOwn ? (own.advantages?.[sampled] ?? 0) : 0);
      if (isOwn) sampled++;
    });
    if (sampled > 0 && own.advantages === undefined) hasAdvantages = false;
  }
  const { advantages, ...rest } = tokens;
  return hasAdvantages ? { ...rest, advantages } : rest;
}

/** Returns the mean advantage of the sampled tokens; null if the trainer stored none. */
function meanAdvantage(messages: readonly ChatMessage[]): number | null {
  const values = messages.flatMap(({ tokens }) => tokens?.advantages ?? []);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}
