// The context of an episode whose program calls the model itself (envs/api/model-calls.ts). The program sends complete
// conversations; this class renders their prompts, keeps the sampled ids of earlier replies in them, and stitches the
// calls into samples (call-stitching.ts). Only sampled tokens are trained. If the chat template rewrites the history,
// for example drops thoughts, the rendered prompt is used as it is, and a new sample begins.
import type { CallMessage, ModelCall } from '../../../envs/api/model-calls';
import type { GeneratedRow } from '../../engine/generation-calls';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import { pythonTag, type ToolSyntax } from '../../models/tokenizer/tool-syntax';
import { chatMessagesOf, chatOf, readReply, shownMessages, type ReadReply } from './call-messages';
import { continuedBy, conversationKey, keepsReply, messageKey, StitchedCalls } from './call-stitching';
import type { ConversationKey } from './call-stitching';
import { promptIds, type PlayedContext, type PromptIds } from './played-context';
import type { PromptTokenizer } from './prompt-tokenizer';
import { sampledMask, type RolloutSample } from './rollout-sample';

/** Limits of one generation that a call sets. */
export interface CallLimits {
  max_new_tokens: number;
  /** Texts that end the reply, in addition to the configured ones. */
  stop: readonly string[];
}

export interface CallPrompt extends PromptIds {
  limits: CallLimits;
  /** Index of the earlier call that the call continues, from 0; undefined if it begins a conversation. */
  continued: number | undefined;
  /** The complete ids of the prompt. */
  ids: readonly number[];
  /** The messages that the call adds to the conversation that it continues, as text for display. */
  added: string;
}

export interface CallContextOptions {
  max_model_len: number;
  /** Maximum tokens of a reply; a prompt must leave room for this many tokens, or for the call's own lower limit. */
  response_length: number;
  syntax: ToolSyntax;
}

/** A call that waits for its reply. */
interface OpenCall {
  call: ModelCall;
  key: ConversationKey;
  prompt: readonly number[];
  continued: number | undefined;
  text: RenderedText;
}

/** A conversation with the reply, and the text of its prompt if it was rendered. */
interface AnsweredCall {
  key: ConversationKey;
  messages: readonly CallMessage[];
  promptText: string | undefined;
}

/** The text of a prompt, rendered when it is first needed; undefined until then. */
type RenderedText = { value: string | undefined };

export class CallContext implements PlayedContext {
  readonly messages: ChatMessage[] = [];
  readonly shortened = false;
  refused: number | undefined;
  private readonly stitched = new StitchedCalls();
  private readonly answered: AnsweredCall[] = [];
  private open: OpenCall | undefined;
  private read: ReadReply | undefined;
  /** Ids in the engine's row. */
  private row: number[] = [];

  constructor(
    private readonly tokenizer: PromptTokenizer,
    private readonly options: CallContextOptions,
  ) {}

  /**
   * Returns the ids of a call's prompt; null if the prompt leaves no room for a reply.
   * @throws UserError if the chat template cannot render the conversation
   */
  prompt(call: ModelCall): CallPrompt | null {
    const { max_model_len, response_length } = this.options;
    const max_new_tokens = Math.min(call.max_tokens ?? response_length, response_length);
    const key = conversationKey(call.messages, call.tools);
    const text: RenderedText = { value: undefined };
    const continued = continuedBy(
      this.answered.map(({ key }) => key),
      key,
    ).find(index => this.isKept(index, call, text));
    const known = continued === undefined ? 0 : this.answered[continued].messages.length;
    const added = call.messages.slice(known);
    const ids = continued === undefined ? this.rendered(call) : this.continuation(continued, added, call);
    if (ids.length + max_new_tokens > max_model_len) {
      this.refused = ids.length;
      return null;
    }
    const next = promptIds(this.row, ids);
    this.row = [...ids];
    this.open = { call, key, prompt: ids, continued, text };
    for (const { role, content } of added) this.messages.push({ role, content });
    return { ...next, limits: { max_new_tokens, stop: call.stop }, continued, ids, added: shownMessages(added) };
  }

  accept({ ids, logprobs, finish }: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'>): string {
    const { call, key, prompt, continued, text } = this.open!;
    const { syntax } = this.options;
    this.stitched.add(prompt, { ids, logprobs }, continued);
    this.row = [...prompt, ...ids];
    const raw = this.tokenizer.decode(ids, { keep: syntax.calls === 'llama3' ? [pythonTag] : [] });
    const counts = { prompt_tokens: prompt.length, completion_tokens: ids.length };
    this.read = readReply(raw, finish, call, syntax, counts);
    const { content, tool_calls } = this.read.reply;
    const reply: CallMessage = { role: 'assistant', content, ...(tool_calls.length > 0 && { tool_calls }) };
    this.answered.push({
      key: { ...key, messages: [...key.messages, messageKey(reply)] },
      messages: [...call.messages, reply],
      promptText: text.value,
    });
    this.messages.push({ role: 'assistant', content: raw });
    return raw;
  }

  /** The reply that `accept` has read last. */
  get reply(): ReadReply {
    return this.read!;
  }

  samples(): RolloutSample[] {
    return this.stitched.samples.map(({ ids, logprobs, turns }) => {
      const sample = { ids: Int32Array.from(ids), turns };
      return { ...sample, mask: sampledMask(sample), logprobs: Float32Array.from(logprobs) };
    });
  }

  private rendered(call: ModelCall): number[] {
    const { messages, tools } = chatOf(call.messages, call.tools, this.options.syntax);
    return this.tokenizer.encodePrompt(messages, '', tools);
  }

  private continuation(continued: number, added: readonly CallMessage[], call: ModelCall): number[] {
    const { syntax } = this.options;
    const { tools } = chatOf(call.messages, call.tools, syntax);
    const sampled = this.stitched.sampledBy(continued);
    const next = this.tokenizer.encodeContinuation(sampled, chatMessagesOf(added, syntax), '', tools);
    return [...this.stitched.idsOf(continued), ...next];
  }

  /**
   * Whether the chat template keeps the reply of an earlier call in the prompt of a call that continues it. A long
   * conversation is rendered once per call: the text of the earlier prompt is known, unless the program has since
   * changed its white space.
   * @param text receives the text of the call's prompt
   */
  private isKept(index: number, call: ModelCall, text: RenderedText): boolean {
    if (!this.tokenizer.render) return true;
    const { messages, promptText } = this.answered[index];
    const reply = messages.length - 1;
    const next = (text.value ??= this.textOf(call.messages, call));
    const prompt =
      promptText !== undefined && next.startsWith(promptText)
        ? promptText
        : this.textOf(call.messages.slice(0, reply), call);
    return keepsReply(prompt, call.messages[reply].content, next);
  }

  /** Renders messages with the tools of a call. */
  private textOf(messages: readonly CallMessage[], { tools }: ModelCall): string {
    const chat = chatOf(messages, tools, this.options.syntax);
    return this.tokenizer.render!(chat.messages, true, chat.tools);
  }
}
