// Mode `single_turn` with a context memory of the workspace (envs/api/plugins/memory.ts): a system message, and one user
// message with the memory's text and the current turn. The memory runs in another process, so its texts are fetched
// before the prompts of a turn are asked for: one for the configured number of earlier turns and, while the prompt does
// not fit, one for fewer turns. A memory sees the pictures of earlier states as placeholders and can quote them.
import type { MemoryRequest } from '../../../envs/api/plugins/memory';
import { withPlaceholders, withPlainMarks, withQuotedMarks } from '../../common/picture-mark';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import {
  historyStart,
  type ContextWindow,
  type CurrentTurn,
  type WindowOptions,
  type WindowPrompt,
} from './context-window';
import type { PromptTokenizer } from './prompt-tokenizer';
import { shownPrompt } from './shown-ids';
import { turnText } from './turn-protocol';

/** Returns the text that a memory shows before a turn. @throws PluginError if the memory fails */
export type Remember = (request: MemoryRequest) => Promise<string>;

export class RememberedWindow implements ContextWindow {
  private prepared: WindowPrompt[] = [];

  /** @param environment name of the environment */
  constructor(
    private readonly tokenizer: PromptTokenizer,
    private readonly options: WindowOptions,
    private readonly environment: string,
    private readonly remember: Remember,
  ) {}

  async prepare({ prompts, history }: Pick<CurrentTurn, 'prompts' | 'history'>, most: number): Promise<void> {
    const { system, prefix, protocol, turns } = this.options;
    const last = prompts.length - 1;
    const current = prompts[last];
    const past = history.map(({ state, raw, thought, answer, executed, reward }, i) => ({
      ...{ turn: i + 1, state: withPlaceholders(state), raw, thought, answer, executed, reward },
    }));
    const states = history.map(({ state }) => state);
    this.prepared = [];
    for (let first = historyStart(last, turns); first <= last; first++) {
      const request = {
        environment: this.environment,
        turn: last + 1,
        state: withPlainMarks(current.state),
        past,
        shown: last - first,
      };
      const text = last === 0 ? '' : withQuotedMarks(await this.remember(request), states);
      const now = turnText(current, protocol);
      const messages: ChatMessage[] = [
        { role: 'system', content: system },
        { role: 'user', content: text === '' ? now : `${text}\n${now}` },
      ];
      const shown = shownPrompt(this.tokenizer, messages, prefix);
      this.prepared.push({ ...shown, added: messages.slice(1) });
      if (shown.ids.length <= most) return;
    }
  }

  prompts(): Iterable<WindowPrompt> {
    return this.prepared;
  }
}
