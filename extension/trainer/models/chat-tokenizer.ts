// The tokenizer and chat template of a Hugging Face folder, as the rollout needs them: a prompt as ids, what follows an answer as
// ids, ids back as text. Sampled ids are never tokenised again: an episode's ids grow by what was sampled and by the text between.
// The text between two answers is found by rendering the template around a stand-in answer and cutting there.
import { BPE, Tokenizer } from '@huggingface/tokenizers';
import { UserError } from '../../protocol/user-error';
import { ChatTemplate, orSentence } from './chat-template';
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
/** Characters of the longest piece whose merges are remembered. */
const longestRememberedPiece = 2048;

/** Stands for an answer while the template is rendered; no template and no environment writes it. */
const standIn = '\u0001answer\u0001';

export class ChatTokenizer {
  private readonly tokenizer: Tokenizer;
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
    this.tokenizer = this.usable(() => new Tokenizer(files.tokenizer, files.tokenizerConfig));
    // Where merges cross spaces a fixed passage of a prompt is one long piece, met again in every episode.
    if (this.tokenizer.model instanceof BPE) this.tokenizer.model.max_length_to_cache = longestRememberedPiece;
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
    return this.encodeContinuation(false, 'x', '')[this.turnEnd.length];
  }

  /** Ids of a text. The members of a group share their prompts, so the newest texts are remembered. */
  encode(text: string): number[] {
    let ids = this.encoded.get(text);
    if (!ids) {
      ids = text === '' ? [] : this.usable(() => this.tokenizer.encode(text, { add_special_tokens: false }).ids);
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
    const options = { skip_special_tokens: !special, clean_up_tokenization_spaces: false };
    return ids.length === 0 ? '' : this.usable(() => this.tokenizer.decode([...ids], options));
  }

  /** Ids of a conversation, the assistant's header and the literal `prefix`. */
  encodePrompt(messages: readonly ChatMessage[], prefix: string): number[] {
    return this.encode(this.render(messages, true) + prefix);
  }

  /**
   * Ids between a sampled answer and the next one: the turn's end (without the stop token where it was sampled), the user's
   * message, the assistant's header and the literal `prefix`.
   */
  encodeContinuation(endedByStop: boolean, userText: string, prefix: string): number[] {
    const text = this.afterAnswer(
      [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: standIn },
        { role: 'user', content: userText },
      ],
      true,
    );
    const ids = this.encode(text + prefix);
    return endedByStop ? ids.slice(1) : ids;
  }

  /** Ids that the template writes after a sampled answer that is the last (without the stop token where it was sampled). */
  encodeEnd(endedByStop: boolean): number[] {
    return this.turnEnd.slice(Number(endedByStop));
  }

  /** The whole conversation as text, for people. */
  render(messages: readonly ChatMessage[], addGenerationPrompt: boolean): string {
    return this.template.render(messages, addGenerationPrompt);
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
