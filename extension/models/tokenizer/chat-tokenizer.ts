// Tokenizer and chat template of a Hugging Face folder, for rollouts: encodes prompts and the text after a response,
// and decodes ids. Sampled ids are never re-tokenised. An episode consists of the sampled ids and, between two
// responses, the ids of the template's text. To get this text, the template is rendered with a placeholder as the
// response, and the result is split at the placeholder.
import type { MarkedPicture } from '../../common/picture-mark';
import { UserError } from '../../common/user-error';
import type { ShownIds } from '../../engine/training-samples';
import type { PicturePrompt } from '../vision/picture-prompt';
import { ChatTemplate, nextMessages, orSentence } from './chat-template';
import type { AddedToken } from './added-tokens';
import { TextEncoder } from './text-encoder';
import type { ChatMessage, ChatTemplateOptions, ChatTool } from './chat-template';
import { expanded, pictured, picturesOf, placedPictures, rendersParts } from './pictured-messages';
import { messageEnd, toolSyntax, type ToolFormat, type ToolSyntax } from './tool-syntax';

/** Contents of a model folder's files. */
export interface TokenizerFiles {
  folder: string;
  tokenizer: object;
  tokenizerConfig: Record<string, unknown>;
  /** Jinja source of the chat template; undefined if the folder has none. */
  chatTemplate: string | undefined;
  templateOptions?: ChatTemplateOptions;
  /** End-of-sequence ids from generation_config.json or config.json. */
  eosTokenIds: number[];
  /** How the model writes pictures; undefined if it reads text only. */
  pictures?: PicturePrompt;
}

/**
 * Limits of the encoding cache: the number of texts, and the total number of characters and ids. The second limit is
 * needed because a single observation may have a million characters.
 */
const rememberedTexts = 4096;
const rememberedSize = 2 ** 24;

/** Placeholder for a response during rendering. It does not occur in templates or in texts of environments. */
const standIn = '\u0001answer\u0001';

export class ChatTokenizer {
  private readonly encoder: TextEncoder;
  private readonly template: ChatTemplate;
  /** Ids that end a response. */
  readonly stopTokenIds: number[];
  /** Ids that the template inserts directly after a response; the first is a stop token. */
  private readonly turnEnd: number[];
  /** Ids of the special tokens by their texts. */
  private readonly specialIds: ReadonlyMap<string, number>;
  private readonly encoded = new Map<string, number[]>();
  /** Whether the template takes contents as lists of texts and pictures; determined when it first renders. */
  private knowsParts: boolean | undefined;
  /** Total characters and ids in `encoded`. */
  private encodedSize = 0;

  constructor(private readonly files: TokenizerFiles) {
    const { folder } = files;
    this.encoder = this.usable(() => new TextEncoder(files.tokenizer, files.tokenizerConfig));
    const { added_tokens: added = [] } = files.tokenizer as { added_tokens?: AddedToken[] };
    this.specialIds = new Map(added.filter(({ special }) => special).map(({ content, id }) => [content, id]));
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
        `${folder}: the chat template writes nothing after a response: use a template that ends a turn with a token`,
      );
    this.stopTokenIds = [...new Set([this.turnEnd[0], ...files.eosTokenIds])];
  }

  /** First token of every message. */
  get turnMarker(): number {
    return this.encodeContinuation([], 'x', '')[this.turnEnd.length];
  }

  /** Encodes a text. Recent texts are cached, because the episodes of a group have the same prompts. */
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

  /** Decodes ids; special tokens are omitted unless `special`, or if their text is in `keep`. */
  decode(ids: readonly number[], { special = false, keep = [] as readonly string[] } = {}): string {
    const kept = new Map(keep.flatMap(text => (this.specialIds.has(text) ? [[this.specialIds.get(text)!, text]] : [])));
    const at = kept.size > 0 ? ids.findIndex(id => kept.has(id)) : -1;
    if (at >= 0)
      return this.decode(ids.slice(0, at)) + kept.get(ids[at])! + this.decode(ids.slice(at + 1), { special, keep });
    return ids.length === 0 ? '' : this.usable(() => this.encoder.decode(ids, special));
  }

  /** Returns how the model writes tool calls. @throws UserError if the chat template's form of calls is unknown */
  toolSyntax(format: ToolFormat): ToolSyntax {
    const probe: ChatMessage[] = [{ role: 'user', content: 'x' }];
    const render = (tools: readonly ChatTool[]) => this.template.render(probe, true, tools);
    return toolSyntax(format, this.files.folder, render, text => this.specialIds.has(text));
  }

  /** Encodes a conversation with its tools, followed by the assistant header and the literal `prefix`. */
  encodePrompt(messages: readonly ChatMessage[], prefix: string, tools?: readonly ChatTool[]): number[] {
    return this.shownPrompt(messages, prefix, tools).ids;
  }

  /** Like `encodePrompt`, with the pictures of the messages. */
  shownPrompt(messages: readonly ChatMessage[], prefix: string, tools?: readonly ChatTool[]): ShownIds {
    return this.encodeShown(this.rendered(messages, true, tools) + prefix, picturesOf(messages));
  }

  /**
   * Returns the ids between the sampled ids `answer` and the next response. They consist of the turn-end ids that
   * `answer` does not contain, the next messages (a text is a user message), the assistant header and the literal
   * `prefix`. Before a tool's result, Llama 3's <|eom_id|> takes the place of the first turn-end id.
   */
  encodeContinuation(
    answer: readonly number[],
    next: string | readonly ChatMessage[],
    prefix: string,
    tools?: readonly ChatTool[],
  ): number[] {
    return this.shownContinuation(answer, next, prefix, tools).ids;
  }

  /** Like `encodeContinuation`, with the pictures of the messages. */
  shownContinuation(
    answer: readonly number[],
    next: string | readonly ChatMessage[],
    prefix: string,
    tools?: readonly ChatTool[],
  ): ShownIds {
    const messages = nextMessages(next);
    const text = this.afterAnswer(
      [{ role: 'user', content: 'x' }, { role: 'assistant', content: standIn }, ...messages],
      true,
      tools,
    );
    const isWaiting = messages[0]?.role === 'tool' && answer.at(-1) === this.specialIds.get(messageEnd);
    const { ids, shows } = this.encodeShown(text + prefix, picturesOf(messages));
    const sampled = isWaiting ? 1 : this.sampledTurnEnd(answer);
    return { ids: ids.slice(sampled), shows: shows.map(({ at, picture }) => ({ at: at - sampled, picture })) };
  }

  /** Returns the turn-end ids that the template inserts after a final response and that `answer` does not contain. */
  encodeEnd(answer: readonly number[]): number[] {
    return this.turnEnd.slice(this.sampledTurnEnd(answer));
  }

  /** Renders the complete conversation as text, with one image token per picture. */
  render(messages: readonly ChatMessage[], addGenerationPrompt: boolean, tools?: readonly ChatTool[]): string {
    return this.rendered(messages, addGenerationPrompt, tools);
  }

  /** @throws PictureError if the model cannot read a picture of this size; its message is a clause without a subject */
  fitsPicture(size: { width: number; height: number }): void {
    this.files.pictures?.tokens(size);
  }

  /** How the model writes pictures; undefined if it reads text only. */
  get pictures(): PicturePrompt | undefined {
    return this.files.pictures;
  }

  private rendered(
    messages: readonly ChatMessage[],
    addGenerationPrompt: boolean,
    tools?: readonly ChatTool[],
  ): string {
    const { pictures } = this.files;
    if (!pictures) return this.template.render(messages, addGenerationPrompt, tools);
    this.knowsParts ??= rendersParts(probe => this.template.render(probe, false), pictures.imageText);
    return this.template.render(pictured(messages, pictures, this.knowsParts), addGenerationPrompt, tools);
  }

  /** Encodes a rendered text whose image tokens stand for the given pictures. */
  private encodeShown(text: string, shown: readonly MarkedPicture[]): ShownIds {
    const { pictures, folder } = this.files;
    if (!pictures || shown.length === 0) return { ids: this.encode(text), shows: [] };
    const ids = this.encode(expanded(text, shown, pictures, folder));
    return { ids, shows: placedPictures(ids, shown, pictures) };
  }

  /**
   * Returns the number of turn-end ids at the end of the response. The number is 0 if the response was truncated or
   * ended with a stop string. It is also 0 if the last id ends a sequence but not a turn, such as Qwen2.5's
   * <|endoftext|>. In these cases, the template inserts all turn-end ids after the response.
   */
  private sampledTurnEnd(answer: readonly number[]): number {
    const last = answer.at(-1);
    return last !== undefined && this.stopTokenIds.includes(last) ? this.turnEnd.indexOf(last) + 1 : 0;
  }

  /**
   * Rethrows library errors as UserErrors. The constructor of the tokenizers library accepts some unusable files, which
   * cause errors only in later calls.
   */
  private usable<T>(work: () => T): T {
    return orSentence(
      work,
      `${this.files.folder}: tokenizer.json cannot be used`,
      'use a model whose tokenizer.json was written by the tokenizers library',
    );
  }

  private afterAnswer(
    messages: readonly ChatMessage[],
    addGenerationPrompt: boolean,
    tools?: readonly ChatTool[],
  ): string {
    const text = this.rendered(messages, addGenerationPrompt, tools);
    const at = text.indexOf(standIn);
    if (at < 0)
      throw new UserError(
        `${this.files.folder}: the chat template modifies the assistant's text: use a template that leaves the text unchanged`,
      );
    return text.slice(at + standIn.length);
  }
}
