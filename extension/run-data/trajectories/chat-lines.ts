// Episodes as lines of data sets: chats in OpenAI's messages format, supervised fine-tuning (SFT) and preference pairs
// (DPO) in the conversational formats of TRL. Episodes with roles are given by role (role-episodes.ts). Pure functions.
import type { Episode } from '../episode';
import type { Manifest } from '../run-manifest';
import type { RoleEpisode } from './role-episodes';

export interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

/** A chat with the facts of its episode. */
export interface MessagesLine {
  readonly messages: readonly ChatMessage[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Returns the chat of an episode in OpenAI's messages format, with the facts of the episode under `metadata`. */
export const messagesLine = (run: Pick<Manifest, 'id'>, episode: RoleEpisode): MessagesLine => ({
  messages: episode.messages,
  metadata: episodeFacts(run, episode),
});

/** Returns what identifies and rates an episode, or the part of it that one role played. */
export function episodeFacts({ id: run }: Pick<Manifest, 'id'>, episode: RoleEpisode): Record<string, unknown> {
  const { id, role, step, mode, tag, environment, seed, group_id, member, success, score, reward, penalty } = episode;
  const facts = {
    run,
    episode: id,
    ...(role !== undefined && { role }),
    step,
    mode,
    tag,
    environment: environment.name,
    version: environment.version,
  };
  const { component_reward, components } = episode;
  const scored = { ...(component_reward !== undefined && { component_reward }), ...(components && { components }) };
  return { ...facts, seed, group_id, member, success, score, reward, penalty, ...scored };
}

/** Returns a line for supervised fine-tuning: only the messages, as OpenAI's fine-tuning and TRL's SFTTrainer read it. */
export const sftLine = ({ messages }: Episode): { messages: readonly ChatMessage[] } => ({ messages });

/** A preference pair in TRL's conversational format. */
export interface PreferencePair {
  readonly prompt: readonly ChatMessage[];
  readonly chosen: readonly ChatMessage[];
  readonly rejected: readonly ChatMessage[];
}

export interface PairedEpisodes {
  readonly pairs: readonly { pair: PreferencePair; best: RoleEpisode; worst: RoleEpisode }[];
  /** Groups without a pair, by reason. */
  readonly skipped: { equalScores: number; single: number; otherPrompts: number };
}

/**
 * Pairs the episodes of each prompt group and role: the highest score against the lowest; of equal scores, the episode with the
 * fewest turns is the better one, and of equal turns the one with the lowest member. A pair begins at the first message
 * that differs: the messages before it are the prompt. Groups of one episode, of equal scores or of different prompts
 * give no pair.
 */
export function pairedEpisodes(episodes: Iterable<RoleEpisode>): PairedEpisodes {
  const groups = new Map<string, RoleEpisode[]>();
  for (const episode of episodes) {
    const key = `${episode.mode} ${episode.step} ${episode.group_id} ${episode.role ?? ''}`;
    const group = groups.get(key);
    if (group) group.push(episode);
    else groups.set(key, [episode]);
  }
  const pairs: { pair: PreferencePair; best: RoleEpisode; worst: RoleEpisode }[] = [];
  const skipped = { equalScores: 0, single: 0, otherPrompts: 0 };
  for (const group of groups.values()) {
    const ranked = group.toSorted(
      (a, b) => b.score - a.score || a.turns.length - b.turns.length || a.member - b.member,
    );
    const [best, worst] = [ranked[0], ranked[ranked.length - 1]];
    if (ranked.length < 2) skipped.single++;
    else if (best.score === worst.score) skipped.equalScores++;
    else {
      const pair = pairOf(best.messages, worst.messages);
      if (pair) pairs.push({ pair, best, worst });
      else skipped.otherPrompts++;
    }
  }
  return { pairs, skipped };
}

/** Returns null if the chats differ before the first answer, or if one of them is the beginning of the other. */
function pairOf(chosen: readonly ChatMessage[], rejected: readonly ChatMessage[]): PreferencePair | null {
  const isSame = (at: number): boolean =>
    chosen[at].role === rejected[at].role && chosen[at].content === rejected[at].content;
  let at = 0;
  while (at < chosen.length && at < rejected.length && isSame(at)) at++;
  if (at === 0 || chosen[at]?.role !== 'assistant' || rejected[at]?.role !== 'assistant') return null;
  return { prompt: chosen.slice(0, at), chosen: answersOf(chosen, at), rejected: answersOf(rejected, at) };
}

/** Returns the messages from `at` to the last answer: a state after the last answer belongs to no answer. */
function answersOf(messages: readonly ChatMessage[], at: number): readonly ChatMessage[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(at, last + 1);
}
