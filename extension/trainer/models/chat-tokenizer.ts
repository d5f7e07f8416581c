// The tokenizer and chat template of a Hugging Face folder, as the rollout needs them: a prompt as ids, what follows an answer as
// ids, ids back as text. Sampled ids are never tokenised again: an episode's ids grow by what was sampled and by the text between.
// The text between two answers is found by rendering the template around a stand-in answer and cutting there.
import { UserError } from '../../protocol/user-error';
import { ChatTemplate, orSentence } from './chat-template';
import { TextEncoder } from './text-encoder';
import type { ChatMessage, ChatTemplateOptions } from './chat-template';

/** Contents of the files, as they stand in a model folder. */
export interface TokenizerFiles {
  folder: string;
  tokenizer: object;
  tokenizerConfig: Record<string, unknown>;
  /** Jinja, from chat_template.jinja or where else it stands. */
  chatTemplate: string | undefined;
  templateOptions?: ChatTemplateOptions;
  /** generation_config.json's or config.json's end-of-sequence ids. */
  eosTokenIds: number[];
}

/** Texts whose ids are remembered, and their characters and ids in all: one observation may have a million. */
const rememberedTexts = 4096;
const rememberedSize = 2 ** 24;

/** Stands for an answer while the template is rendered; no template and no environment writes it. */
const standIn = '\u0001answer\u0001';

export class ChatTokenizer {
  private readonly encoder: TextEncoder;
  private readonly template: ChatTemplate;
  /** Ids that end an answer. */
  readonly stopTokenIds: number[];
  /** What the template writes right after an answer, tokenised: the stop token first. */
  private readonly turnEnd: number[];
  private readonly encoded = new Map<string, number[]>();
  /** Characters and ids of `encoded`. */
  private encodedSize = 0;

  constructor(private readonly files: TokenizerFiles) {
    const { folder } = files;
    this.encoder = this.usable(() => new TextEncoder(files.tokenizer, files.tokenizerConfig));
    if (!files.chatTemplate)
      throw new UserError(
        `${folder}: the tokenizer has no chat template: add chat_template.jinja or use an instruction-tuned model`,
      );
    this.template = new ChatTemplate(files.chatTemplate, folder, files.tokenizerConfig, files.templateOptions);
    const end = this.afterAnswer(
      [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: standIn },
      ],
      false,
    );
    this.turnEnd = this.encode(end);
    if (this.turnEnd.length === 0)
      throw new UserError(
        `${folder}: the chat template writes nothing after an answer: it must close a turn with a token`,
      );
    this.stopTokenIds = [...new Set([this.turnEnd[0], ...files.eosTokenIds])];
  }

  /** The token that every message begins with. */
  get turnMarker(): number {
    return this.encodeContinuation([], 'x', '')[this.turnEnd.length];
  }

  /** Ids of a text. The members of a group share their prompts, so the newest texts are remembered. */
  encode(text: string): number[] {
    let ids = this.encoded.get(text);
    if (!ids) {
      ids = text === '' ? [] : this.usable(() => this.encoder.encode(text));
      this.encodedSize += text.length + ids.length;
      if (this.encoded.size >= rememberedTexts || this.encodedSize > rememberedSize) {
        this.encoded.clear();
        this.encodedSize = text.length + ids.length;
      }
      this.encoded.set(text, ids);
    }
    return [...ids];
  }

  /** Text of ids; special tokens are left out unless `special`. */
  decode(ids: readonly number[], { special = false } = {}): string {
    return ids.length === 0 ? '' : this.usable(() => this.encoder.decode(ids, special));
  }

  /** Ids of a conversation, the assistant's header and the literal `prefix`. */
  encodePrompt(messages: readonly ChatMessage[], prefix: string): number[] {
    return this.encode(this.render(messages, true) + prefix);
  }

  /**
   * Ids between the sampled ids `answer` and the next answer: the turn's end (as far as the answer lacks it), the user's message, the
   * assistant's header and the literal `prefix`.
   */
  encodeContinuation(answer: readonly number[], userText: string, prefix: string): number[] {
    const text = this.afterAnswer(
      [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: standIn },
        { role: 'user', content: userText },
      ],
      true,
    );
    return this.encode(text + prefix).slice(this.sampledTurnEnd(answer));
  }

  /** Ids that the template writes after the sampled ids `answer` where they are the last, as far as the answer lacks them. */
  encodeEnd(answer: readonly number[]): number[] {
    return this.turnEnd.slice(this.sampledTurnEnd(answer));
  }

  /** The whole conversation as text, for people. */
  render(messages: readonly ChatMessage[], addGenerationPrompt: boolean): string {
    return this.template.render(messages, addGenerationPrompt);
  }

  /**
   * How many tokens of the turn's end the answer holds. None where it was cut, or ended by a stop string or by an id that ends a sequence but
   * no turn (Qwen2.5's <|endoftext|>): the template closes the turn behind these all the same.
   */
  private sampledTurnEnd(answer: readonly number[]): number {
    const last = answer.at(-1);
    return last !== undefined && this.stopTokenIds.includes(last) ? this.turnEnd.indexOf(last) + 1 : 0;
  }

  /** The library takes much that it cannot use, and finds out when it does. */
  private usable<T>(work: () => T): T {
    return orSentence(
      work,
      `${this.files.folder}: tokenizer.json cannot be used`,
      'use a model with a tokenizer.json as the tokenizers library writes it',
    );
  }

  private afterAnswer(messages: readonly ChatMessage[], addGenerationPrompt: boolean): string {
    const text = this.render(messages, addGenerationPrompt);
    const at = text.indexOf(standIn);
    if (at < 0)
      throw new UserError(
        `${this.files.folder}: the chat template changes an assistant's text: use one that writes it as it is`,
      );
    return text.slice(at + standIn.length);
  }
}
