// The context of an episode with tools: a chat in which a response is followed by the results of its calls. The tools
// and the first user message, which is the task, are always part of the prompt. If the chat is too long, or the window
// is limited, the oldest turns are left out together with the messages that answer them. Responses are the sampled ids.
import type { ShownIds } from '../../engine/training-samples';
import type { ChatMessage, ChatTool } from '../../models/tokenizer/chat-template';
import {
  historyStart,
  type ContextWindow,
  type CurrentTurn,
  type WindowOptions,
  type WindowPrompt,
} from './context-window';
import type { PromptTokenizer } from './prompt-tokenizer';
import { appendShown, shownContinuation, shownPrompt } from './shown-ids';
import { chatTools, turnMessages, type EpisodeTools } from './tool-protocol';

export class ToolWindow implements ContextWindow {
  private readonly tools: readonly ChatTool[] | undefined;
  private readonly encoded = new Map<number, ShownIds>();

  constructor(
    private readonly tokenizer: PromptTokenizer,
    private readonly options: WindowOptions,
    private readonly episode: EpisodeTools,
  ) {
    this.tools = episode.syntax.native ? chatTools(episode.tools) : undefined;
  }

  *prompts(turn: CurrentTurn): Generator<WindowPrompt> {
    const last = turn.prompts.length - 1;
    const added = this.messages(turn, last);
    for (let first = historyStart(last, this.options.turns); first <= last; first++) {
      const all: ShownIds = { ids: [], shows: [] };
      appendShown(all, this.idsBefore(turn, 0));
      for (let past = first; past < last; past++) {
        appendShown(all, { ids: turn.answers[past], shows: [] });
        appendShown(all, this.idsBefore(turn, past + 1));
      }
      yield { ...all, added };
    }
  }

  private messages({ prompts }: CurrentTurn, turn: number): ChatMessage[] {
    return turnMessages(prompts[turn], this.episode, this.options.protocol);
  }

  /**
   * Returns the ids of the messages before the response of a turn; those of the first turn begin with the system
   * message. Each is encoded once, because earlier turns never change.
   */
  private idsBefore(turn: CurrentTurn, index: number): ShownIds {
    const { system, prefix } = this.options;
    const messages = this.messages(turn, index);
    const ids =
      this.encoded.get(index) ??
      (index === 0
        ? shownPrompt(this.tokenizer, [{ role: 'system', content: system }, ...messages], prefix, this.tools)
        : shownContinuation(this.tokenizer, turn.answers[index - 1], messages, prefix, this.tools));
    this.encoded.set(index, ids);
    return ids;
  }
}
