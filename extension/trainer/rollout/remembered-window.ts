// Mode `single_turn` with a context memory of the workspace (envs/api/plugins/memory.ts): a system message, and one user
// message, as a built-in memory writes it. The memory runs in another process, so its texts are fetched before the prompts
// of a turn are asked for: one for the configured number of earlier turns and, while the prompt does not fit, one for fewer
// turns. A memory sees pictures as placeholders and can quote them.
import type { Memory, MemoryRequest } from '../../../envs/api/plugins/memory';
import { withPlaceholders, withPlainMarks, withQuotedMarks } from '../../common/picture-mark';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import {
  historyStart,
  type ContextWindow,
  type CurrentTurn,
  type WindowOptions,
  type WindowPrompt,
} from './context-window';
import { memoryRequest, userMessage } from './memory-message';
import type { PromptTokenizer } from './prompt-tokenizer';
import { shownPrompt } from './shown-ids';

/** Asks a memory about a turn. @throws PluginError if the memory fails */
export type Remember = (request: MemoryRequest) => Promise<ReturnType<Memory['remember']>>;

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
    const states = prompts.map(({ state }) => state);
    this.prepared = [];
    for (let first = historyStart(last, turns); first <= last; first++) {
      const request = memoryRequest({ prompts, history }, first, this.environment, protocol);
      const remembered = await this.remember(withoutMarks(request));
      const quoted =
        typeof remembered === 'string'
          ? withQuotedMarks(remembered, states)
          : { message: withQuotedMarks(remembered.message, states) };
      const messages: ChatMessage[] = [
        { role: 'system', content: system },
        { role: 'user', content: userMessage(quoted, current, protocol) },
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

/** Returns a request for another process: pictures of states that the memory may quote are placeholders. */
const withoutMarks = (request: MemoryRequest): MemoryRequest => ({
  ...request,
  state: withPlainMarks(request.state),
  current: withPlaceholders(request.current),
  past: request.past.map(turn => ({ ...turn, state: withPlaceholders(turn.state) })),
});
