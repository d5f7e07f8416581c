// Adapts a model behind an API to the engine's interface. The agent proxy can then play episodes of an API model in the
// same way as episodes of a local model, including contexts and memories. An API returns no token ids. Instead of
// tokens, complete messages are numbered: an "id" is an index into a table of messages. A prompt has one id per
// message, and a response has a single id. Each generator serves one episode and counts its tokens and requests.
import type { GeneratedRow, GenerationRow } from '../../engine/generation-calls';
import type { TextGenerator } from '../rollout/rollout-request';
import { nextMessages, type ChatMessage } from '../../models/tokenizer/chat-template';
import type { PromptTokenizer } from '../rollout/prompt-tokenizer';
import type { ApiAnswer, ApiUsage } from './api-service';
import { RequestRefused } from './api-client';

/**
 * Takes the place of a tokenizer. A tokenizer assigns ids to tokens; this class assigns one number to each message.
 * Equal messages have the same number. When messages are added to a prompt, the numbers of the earlier messages are
 * therefore a prefix of the new prompt.
 */
export class MessageNumbers implements PromptTokenizer {
  /** Differs from every id of a prompt, because those ids are indices from 0 on. */
  readonly turnMarker = -1;
  private readonly messages: ChatMessage[] = [];
  private readonly numbers = new Map<string, number>();

  /**
   * @param prefix the prefix of every response (`<think>` or the answer's tag); the API model may or may not write it
   */
  constructor(private readonly prefix: string) {}

  encodePrompt(messages: readonly ChatMessage[]): number[] {
    return messages.map(message => this.numberOf(message));
  }

  encodeContinuation(_answer: readonly number[], next: string | readonly ChatMessage[]): number[] {
    return this.encodePrompt(nextMessages(next));
  }

  encodeEnd(): number[] {
    return [];
  }

  /** Returns the text of responses without `prefix`, because the caller adds `prefix` itself. */
  decode(ids: readonly number[]): string {
    const text = ids.map(id => this.messages[id].content).join('');
    return text.trimStart().startsWith(this.prefix) ? text.trimStart().slice(this.prefix.length) : text;
  }

  /** Returns the number of a response; `content` is the text as the model wrote it. */
  encodeAnswer(content: string): number {
    return this.numberOf({ role: 'assistant', content });
  }

  /**
   * Returns the conversation for a list of message numbers. An empty message gets a placeholder, because services
   * refuse messages without content.
   */
  conversation(ids: readonly number[]): ChatMessage[] {
    return ids.map(id => this.messages[id]).map(message => ({ ...message, content: message.content || '(no answer)' }));
  }

  private numberOf(message: ChatMessage): number {
    const key = `${message.role} ${message.content}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      this.numbers.set(key, (number = this.messages.length));
      this.messages.push(message);
    }
    return number;
  }
}

/** Number of requests and tokens of an episode, and the failure of its last response. */
export interface ApiBill extends ApiUsage {
  requests: number;
  /**
   * Reason why the last response is unusable: `length` if it was cut at the token limit; `content_filter` if it was
   * filtered; `refused: …` with the service's message if the request was refused. Null if no response failed.
   */
  failure: string | null;
}

export class ApiGenerator implements TextGenerator {
  readonly bill: ApiBill = { input_tokens: 0, output_tokens: 0, requests: 0, failure: null };
  private readonly rows = new Map<string, number[]>();

  /** @param ask returns the service's answer to a conversation */
  constructor(
    private readonly numbers: MessageNumbers,
    private readonly ask: (messages: readonly ChatMessage[]) => Promise<ApiAnswer>,
  ) {}

  async generate(rows: readonly GenerationRow[]): Promise<GeneratedRow[]> {
    return Promise.all(rows.map(row => this.answer(row)));
  }

  release(rows: readonly string[]): void {
    for (const row of rows) this.rows.delete(row);
  }

  private async answer({ row, append }: GenerationRow): Promise<GeneratedRow> {
    const prompt = [...(this.rows.get(row) ?? []), ...append];
    const { text, finish } = await this.answerTo(this.numbers.conversation(prompt));
    const id = this.numbers.encodeAnswer(text);
    this.rows.set(row, [...prompt, id]);
    const failed = this.bill.failure !== null;
    return { row, ids: [id], logprobs: [0], finish: finish === 'stop' ? 'stop' : 'length', ...(failed && { failed }) };
  }

  private async answerTo(messages: readonly ChatMessage[]): Promise<Pick<ApiAnswer, 'text' | 'finish'>> {
    this.bill.requests++;
    try {
      const { text, finish, usage } = await this.ask(messages);
      this.bill.input_tokens += usage.input_tokens;
      this.bill.output_tokens += usage.output_tokens;
      if (finish !== 'stop') this.bill.failure = finish;
      return { text, finish };
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      this.bill.failure = `refused: ${error.message}`;
      return { text: '', finish: 'content_filter' };
    }
  }
}
