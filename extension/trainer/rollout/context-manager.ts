// The context of an episode (RAGEN's context manager): the conversation as messages for display, and as token ids for
// the model and for training. The sampled ids are stored and never re-tokenised, so training uses the same tokens in
// the same context as sampling. By default, the mask is 1 only at sampled ids.
// In mode `full`, an episode is one sample that grows with each turn. A new sample begins only when the chat is shortened
// or a context mask leaves out tokens, because the next prompt then no longer begins with all earlier tokens. In the windowed modes, each turn is
// a separate sample.
import { shownIds, type ContextMask, type PastResponse } from '../../algorithms/context-mask';
import { appendAll } from '../../common/lists';
import { withPlainMarks } from '../../common/picture-mark';
import type { GeneratedRow } from '../../engine/generation-calls';
import type { ShownPicture } from '../../engine/training-samples';
import type { ContextWindow, CurrentTurn } from './context-window';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import { promptIds, type PlayedContext, type PromptIds } from './played-context';
import type { PromptTokenizer } from './prompt-tokenizer';
import type { MaskRule } from './response-mask';
import type { RolloutSample } from './rollout-sample';
import { thoughtRange } from './answer-ranges';
import type { TurnPrompt } from './turn-protocol';

export interface ContextOptions {
  system: string;
  /** The prefix of every response. */
  prefix: string;
  max_model_len: number;
  /** Maximum tokens of a response; a prompt must leave room for this many tokens. */
  response_length: number;
  /** True if each turn is a separate sample (windowed modes). */
  samplePerTurn: boolean;
  /** Selects which tokens of a sample the policy is trained on. */
  mask: MaskRule;
  /** Selects which tokens of earlier responses a prompt shows; null shows all. */
  contextMask: ContextMask | null;
  /** Special tokens that the text of a response keeps, because they mark tool calls; none by default. */
  keep?: readonly string[];
}

/** A sample to which later turns may be added. */
interface GrowingSample {
  ids: number[];
  shows: readonly ShownPicture[];
  logprobs: number[];
  turns: RolloutSample['turns'];
}

export class EpisodeContext implements PlayedContext {
  readonly messages: ChatMessage[];
  /** True if a prompt omitted turns that are inside the window, because they did not fit into the model's context. */
  shortened = false;
  /** Number of tokens of the last prompt that did not fit; undefined if every prompt fitted. */
  refused: number | undefined;
  private readonly prompts: TurnPrompt[] = [];
  /** Response of each turn. */
  private readonly answers: PastResponse[] = [];
  private readonly growing: GrowingSample[] = [];
  /** Ids in the engine's row: the newest prompt and, after generation, its response. */
  private row: number[] = [];
  /** The pictures that the row shows. */
  private shows: readonly ShownPicture[] = [];
  private extended = false;

  constructor(
    private readonly tokenizer: PromptTokenizer,
    private readonly window: ContextWindow,
    private readonly options: ContextOptions,
  ) {
    this.messages = [{ role: 'system', content: options.system }];
  }

  /** Fetches what the next turn's prompt needs from a memory of the workspace; must be called before `prompt`. */
  async prepare(prompt: TurnPrompt, history: CurrentTurn['history']): Promise<void> {
    const { max_model_len, response_length } = this.options;
    const shown = this.marked(history);
    await this.window.prepare?.(
      { prompts: [...this.prompts, prompt], history: shown },
      max_model_len - response_length,
    );
  }

  /**
   * Returns the ids of the next turn's prompt. If even the prompt with the fewest previous turns leaves no room for a
   * response, returns null and adds no prompt; the episode then ends.
   * @param history the previous turns
   */
  prompt(prompt: TurnPrompt, history: CurrentTurn['history']): PromptIds | null {
    const { max_model_len, response_length, contextMask } = this.options;
    const answers = contextMask ? shownIds(contextMask, this.answers) : this.answers.map(({ ids }) => ids);
    const turn: CurrentTurn = { prompts: [...this.prompts, prompt], history: this.marked(history), answers };
    let shortened = false;
    for (const { ids, shows, added } of this.window.prompts(turn)) {
      if (ids.length + response_length <= max_model_len) {
        this.prompts.push(prompt);
        appendAll(
          this.messages,
          added.map(message => ({ ...message, content: withPlainMarks(message.content) })),
        );
        this.shortened ||= shortened;
        return this.setRow(ids, shows);
      }
      shortened = true;
      this.refused = ids.length;
    }
    return null;
  }

  /** Records a sampled response. Returns its text with the generation prefix in front. */
  accept({ ids, logprobs }: Pick<GeneratedRow, 'ids' | 'logprobs'>): string {
    const from = this.row.length;
    appendAll(this.row, ids);
    const { prefix, contextMask, keep } = this.options;
    const thought = contextMask ? thoughtRange(ids, prefix, part => this.tokenizer.decode(part)) : ([0, 0] as const);
    this.answers.push({ ids: [...ids], logprobs: [...logprobs], thought });
    const last = this.growing.at(-1);
    const grows = last !== undefined && this.extended && !this.options.samplePerTurn;
    const sample = grows ? last : { ids: [], shows: [], logprobs: [], turns: [] };
    if (!grows) this.growing.push(sample);
    while (sample.logprobs.length < from) sample.logprobs.push(0);
    sample.ids = [...this.row];
    sample.shows = this.shows;
    appendAll(sample.logprobs, logprobs);
    sample.turns.push({ turn: this.answers.length, span: [from, this.row.length] });
    const raw = prefix + this.tokenizer.decode(ids, { keep });
    this.messages.push({ role: 'assistant', content: raw });
    return raw;
  }

  /** Returns the training samples of the episode. */
  samples(): RolloutSample[] {
    return this.growing.map(({ ids, shows, logprobs, turns }) => {
      const end = this.options.mask.closed ? this.tokenizer.encodeEnd(ids.slice(turns[turns.length - 1].span[0])) : [];
      const all = Int32Array.from([...ids, ...end]);
      return {
        ids: all,
        mask: this.options.mask.mask({ ids: all, turns }),
        logprobs: Float32Array.from([...logprobs, ...end.map(() => 0)]),
        turns,
        ...(shows.length > 0 && { shows }),
      };
    });
  }

  /**
   * Sets the content of the row to `ids`. If the row's present content is a prefix of `ids`, only the remaining ids are
   * appended.
   */
  private setRow(ids: number[], shows: readonly ShownPicture[]): PromptIds {
    const next = promptIds(this.row, ids, this.shows, shows);
    this.extended = !next.fresh || this.row.length === 0;
    this.row = ids;
    this.shows = shows;
    return next;
  }

  /** Returns the previous turns with the states as their prompts had them, so with the marks of their pictures. */
  private marked(history: CurrentTurn['history']): CurrentTurn['history'] {
    return history.map((turn, i) => ({ ...turn, state: this.prompts[i]?.state ?? turn.state }));
  }
}
