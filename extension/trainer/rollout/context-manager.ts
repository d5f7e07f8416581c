// The context of an episode (RAGEN's context manager, mode `full`): the chat as messages for people, and as token ids for the model.
// Ids grow by segments, prompt · sampled · what follows · sampled …, and sampled ids stay exactly as sampled: nothing is
// tokenised again, so the policy is trained on the very tokens it drew, and the mask is 1 on these and nowhere else.
import type { GeneratedRow } from '../engine/engine';

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

/** What the context needs of a tokenizer with a chat template. */
export interface PromptTokenizer {
  /** Ids of a conversation that ends with a user's message, the assistant's header and the literal `prefix`. */
  encodePrompt(messages: readonly ChatMessage[], prefix: string): number[];
  /** Ids between a sampled answer and the next one: the turn's end (its stop token only if that was not sampled), the user's message, the assistant's header, `prefix`. */
  encodeContinuation(endedByStop: boolean, userText: string, prefix: string): number[];
  /** Text of sampled ids, special tokens left out. */
  decode(ids: readonly number[]): string;
}

/** An episode's context, whatever its window. */
export interface EpisodeContext {
  readonly messages: readonly ChatMessage[];
  /** All ids so far; `mask` is 1 and `logprobs` is set where a token was sampled (else 0). */
  readonly ids: readonly number[];
  readonly mask: readonly (0 | 1)[];
  readonly logprobs: readonly number[];
  /** Span [from, to) of each turn's sampled tokens in `ids`. */
  readonly spans: readonly [number, number][];
  /**
   * Adds the user's text of the next turn; gives the ids to append before generating. Null, with nothing changed, when what follows
   * would not fit: the episode is over then, since this mode never drops tokens.
   */
  prompt(userText: string): number[] | null;
  /** Takes the sampled answer; gives its text with the generation prefix in front. */
  accept(generated: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'>): string;
}

export interface ContextOptions {
  /** What every answer begins with. */
  prefix: string;
  max_model_len: number;
  /** Most tokens of an answer: a prompt must leave room for so many. */
  response_length: number;
}

/** Mode `full`: the whole chat, one training sequence an episode. */
export class FullContext implements EpisodeContext {
  readonly messages: ChatMessage[];
  readonly ids: number[] = [];
  readonly mask: (0 | 1)[] = [];
  readonly logprobs: number[] = [];
  readonly spans: [number, number][] = [];
  private endedByStop = true;

  constructor(
    private readonly tokenizer: PromptTokenizer,
    private readonly options: ContextOptions,
    system: string,
  ) {
    this.messages = [{ role: 'system', content: system }];
  }

  prompt(userText: string): number[] | null {
    const message: ChatMessage = { role: 'user', content: userText };
    const { prefix, max_model_len, response_length } = this.options;
    const append =
      this.spans.length === 0
        ? this.tokenizer.encodePrompt([...this.messages, message], prefix)
        : this.tokenizer.encodeContinuation(this.endedByStop, userText, prefix);
    if (this.ids.length + append.length + response_length > max_model_len) return null;
    this.messages.push(message);
    for (const id of append) this.push(id, 0, 0);
    return append;
  }

  accept({ ids, logprobs, finish }: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'>): string {
    const from = this.ids.length;
    ids.forEach((id, index) => this.push(id, 1, logprobs[index]));
    this.spans.push([from, this.ids.length]);
    this.endedByStop = finish === 'stop';
    const raw = this.options.prefix + this.tokenizer.decode(ids);
    this.messages.push({ role: 'assistant', content: raw });
    return raw;
  }

  private push(id: number, sampled: 0 | 1, logprob: number): void {
    this.ids.push(id);
    this.mask.push(sampled);
    this.logprobs.push(logprob);
  }
}
