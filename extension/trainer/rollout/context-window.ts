// The part of an episode that the model sees in a turn (RAGEN's `agent_proxy.context_window_mode` and length control).
// This part is the complete chat, the last turns as a chat, or one message that summarises previous turns. A window
// returns several prompts, from longest to shortest, each with less history than the previous prompt. The first prompt
// that fits into the model's context is used.
// The responses in a chat are the sampled ids, not re-tokenised texts. Therefore, unless a turn was removed from the
// chat, the next prompt begins with exactly the tokens in the engine's cache.
import type { Memory } from '../../../envs/api/plugins/memory';
import type { ShownIds, ShownPicture } from '../../engine/training-samples';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import type { PromptTokenizer } from './prompt-tokenizer';
import { memoryRequest, userMessage, type HistoryTurn } from './memory-message';
import { appendShown, shownContinuation, shownPrompt } from './shown-ids';
import { rewardText, turnText, type TurnPrompt, type TurnProtocol } from './turn-protocol';

/** The current turn with all previous turns. */
export interface CurrentTurn {
  /** Prompt of each turn; the last prompt belongs to the current turn. */
  prompts: readonly TurnPrompt[];
  /** Result of each previous turn. */
  history: readonly HistoryTurn[];
  /** Sampled ids of each previous turn, without those that a context mask leaves out. */
  answers: readonly (readonly number[])[];
}

/** One prompt of a window. */
export interface WindowPrompt {
  /** Ids from the system message to the literal prefix of the response. */
  ids: number[];
  /** The pictures that the ids show. */
  shows: readonly ShownPicture[];
  /** The messages since the last response. */
  added: ChatMessage[];
}

export interface ContextWindow {
  /**
   * Fetches what the prompts of a turn need from elsewhere, until a prompt has at most `most` tokens. Called before
   * `prompts` of each turn.
   */
  prepare?(turn: Pick<CurrentTurn, 'prompts' | 'history'>, most: number): Promise<void>;
  prompts(turn: CurrentTurn): Iterable<WindowPrompt>;
}

export interface WindowOptions {
  system: string;
  /** The prefix of every response. */
  prefix: string;
  protocol: TurnProtocol;
  /** Number of turns shown, including the current one; Infinity for all. */
  turns: number;
}

/** Converts `max_context_window` to a number of turns; null, undefined or a negative number means all turns. */
export const windowTurns = (max_context_window: number | null | undefined): number =>
  max_context_window === null || max_context_window === undefined || max_context_window < 0
    ? Infinity
    : max_context_window;

/**
 * Returns the index of the oldest turn that is shown at turn index `turn` by a window of `turns` turns (RAGEN's
 * history_start).
 */
export const historyStart = (turn: number, turns: number): number => Math.max(0, turn - turns + 1);

/**
 * A chat message, identified by its role and by the index of its turn. A user message with `reward` begins with the
 * reward of the previous turn.
 */
export type WindowMessage = UserMessage | { role: 'assistant'; turn: number };

interface UserMessage {
  role: 'user';
  turn: number;
  reward: boolean;
}

/**
 * Returns the messages from turn index `first` to `last`; turn `last` has no response yet. The first message has no
 * reward.
 */
export function chatMessages(first: number, last: number): WindowMessage[] {
  const messages: WindowMessage[] = [{ role: 'user', turn: first, reward: false }];
  for (let turn = first + 1; turn <= last; turn++)
    messages.push({ role: 'assistant', turn: turn - 1 }, { role: 'user', turn, reward: true });
  return messages;
}

/**
 * Removes the oldest turn of a chat. The remaining chat begins with the state of the next turn. Returns null if only
 * the current turn is left.
 */
export function withoutOldestTurn(messages: readonly WindowMessage[]): WindowMessage[] | null {
  const next = messages[2];
  return next?.role === 'user' ? [{ ...next, reward: false }, ...messages.slice(3)] : null;
}

/**
 * Shortens a chat as RAGEN does: removes the oldest turn and the user message after it, which contains the reward of
 * the removed turn and the state of the next turn. The remaining chat begins with a response. If the removed user
 * message belongs to the current turn, the prompt no longer contains the current state. Returns null if at most two
 * messages are left.
 */
export function withoutOldestMessages(messages: readonly WindowMessage[]): WindowMessage[] | null {
  if (messages.length <= 2) return null;
  const [first, second, third] = messages;
  const pair = first.role === 'user' && second.role === 'assistant';
  return messages.slice(pair ? (third.role === 'user' && third.reward ? 3 : 2) : 1);
}

/** Modes `full` and `limited_multi_turn`: the last turns as a chat. Each episode has a separate instance. */
export class ChatWindow implements ContextWindow {
  private readonly encoded = new Map<string, ShownIds>();

  constructor(
    private readonly tokenizer: PromptTokenizer,
    private readonly options: WindowOptions,
    private readonly shorten: (messages: readonly WindowMessage[]) => WindowMessage[] | null = withoutOldestTurn,
  ) {}

  *prompts(turn: CurrentTurn): Generator<WindowPrompt> {
    const last = turn.prompts.length - 1;
    const user = this.userText(turn, last, last > 0);
    let messages: WindowMessage[] | null = chatMessages(historyStart(last, this.options.turns), last);
    for (; messages; messages = this.shorten(messages))
      yield { ...this.idsOf(messages, turn), added: [{ role: 'user', content: user }] };
  }

  private userText({ prompts, history }: CurrentTurn, turn: number, reward: boolean): string {
    const text = turnText(prompts[turn], this.options.protocol);
    return reward ? rewardText(history[turn - 1].reward, history[turn - 1].executed.length) + text : text;
  }

  /**
   * Returns the ids of a chat. They begin with the system message and, if the chat begins with a user message, this
   * user message. After these, each response contributes its sampled ids, and the ids of the text between this response
   * and the next one.
   */
  private idsOf(messages: readonly WindowMessage[], turn: CurrentTurn): ShownIds {
    const first = messages[0]?.role === 'user' ? messages[0] : null;
    const all: ShownIds = { ids: [], shows: [] };
    appendShown(all, this.opening(first, turn));
    for (const message of messages.slice(first ? 1 : 0))
      appendShown(
        all,
        message.role === 'assistant'
          ? { ids: turn.answers[message.turn], shows: [] }
          : this.continuation(message, turn),
      );
    return all;
  }

  private opening(first: UserMessage | null, turn: CurrentTurn): ShownIds {
    const { system, prefix } = this.options;
    return this.remembered(`opening ${first?.turn}`, () => {
      const messages: ChatMessage[] = [{ role: 'system', content: system }];
      if (first) messages.push({ role: 'user', content: this.userText(turn, first.turn, first.reward) });
      return shownPrompt(this.tokenizer, messages, prefix);
    });
  }

  private continuation({ turn: index, reward }: UserMessage, turn: CurrentTurn): ShownIds {
    return this.remembered(`continuation ${index}`, () =>
      shownContinuation(
        this.tokenizer,
        turn.answers[index - 1],
        this.userText(turn, index, reward),
        this.options.prefix,
      ),
    );
  }

  /** Caches token ids, so that each text of an episode is tokenised once; previous turns never change. */
  private remembered(key: string, encode: () => ShownIds): ShownIds {
    const ids = this.encoded.get(key) ?? encode();
    this.encoded.set(key, ids);
    return ids;
  }
}

/** Mode `single_turn` with a built-in memory: a system message, and one user message that the memory writes. */
export class MemoryWindow implements ContextWindow {
  /** @param environment name of the environment */
  constructor(
    private readonly tokenizer: PromptTokenizer,
    private readonly options: WindowOptions,
    private readonly environment: string,
    private readonly memory: Memory,
  ) {}

  *prompts(turn: CurrentTurn): Generator<WindowPrompt> {
    const { system, prefix, protocol, turns } = this.options;
    const last = turn.prompts.length - 1;
    for (let first = historyStart(last, turns); first <= last; first++) {
      const remembered = this.memory.remember(memoryRequest(turn, first, this.environment, protocol));
      const user = userMessage(remembered, turn.prompts[last], protocol);
      const messages: ChatMessage[] = [
        { role: 'system', content: system },
        { role: 'user', content: user },
      ];
      yield { ...shownPrompt(this.tokenizer, messages, prefix), added: messages.slice(1) };
    }
  }
}
