// Generator for replaying an episode. For each turn, the generator returns the stored tokens, hand-written tokens, or
// hand-written tokens that a policy continues. The agent proxy calls this generator instead of the engine, so prompts,
// parsing, rewards and context are the same as in training. The engine knows the episode's context under the name of a
// row. Invariant: the token ids that the generator stores for this row equal the ids of the context.
import { appendAll } from '../../common/lists';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { RemoteEngine } from '../../engine/remote-engine';
import type { ShownIds } from '../../engine/training-samples';
import type { TextGenerator } from '../rollout/rollout-request';
import { appendShown } from '../rollout/shown-ids';

/** The source of a turn's tokens. */
export type TurnSource =
  | { from: 'stored'; row: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'> }
  | { from: 'hand'; ids: number[] }
  /** `given` holds the hand-written ids at the start of the response; the policy samples the rest. */
  | { from: 'policy'; given: number[]; seed: number; play: PolicyTurn };

/** Runs `work` with the engine of the policy, after the policy is loaded. */
export type PolicyTurn = <T>(work: (engine: RemoteEngine) => Promise<T>) => Promise<T>;

export interface ScriptedTurn {
  /** All token ids of the episode's context before the response. */
  prompt: readonly number[];
  row: GeneratedRow;
  /** Number of hand-written tokens at the start of the response. */
  given: number;
}

export class ScriptedTurns implements TextGenerator {
  /** All token ids of the episode's context, prompts and responses so far, and the pictures that they show. */
  private held: ShownIds = { ids: [], shows: [] };
  /** The engine that has cached the start of this context, and the number of cached tokens. */
  private read: { engine: RemoteEngine; length: number } | undefined;

  /**
   * @param row name of the row in the engine
   * @param source returns the source of the next turn's tokens; the promise may wait for the user's input
   */
  constructor(
    private readonly row: string,
    private readonly source: (prompt: readonly number[]) => Promise<TurnSource>,
    private readonly onTurn: (turn: ScriptedTurn) => void,
    private readonly onTokens: (ids: number[], logprobs: number[]) => void,
  ) {}

  async generate([request]: readonly GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]> {
    appendShown(this.held, { ids: request.append, shows: request.shows ?? [] });
    const prompt = [...this.held.ids];
    const source = await this.source(prompt);
    const { ids, logprobs, finish, given } = await this.answer(source, sampling);
    appendAll(this.held.ids, ids);
    const row = { row: request.row, ids, logprobs, finish };
    this.onTurn({ prompt, row, given });
    return [row];
  }

  async release(rows: readonly string[]): Promise<void> {
    if (rows.length === 0) return; // a non-empty list names the only row
    this.held = { ids: [], shows: [] };
    const { read } = this;
    this.read = undefined;
    await read?.engine.release([this.row]).catch(() => undefined); // fails if another model has replaced the engine
  }

  private async answer(
    source: TurnSource,
    sampling: SamplingOptions,
  ): Promise<Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'> & { given: number }> {
    switch (source.from) {
      case 'stored':
        return { ...source.row, given: 0 };
      case 'hand':
        return { ids: source.ids, logprobs: source.ids.map(() => 0), finish: 'stop', given: source.ids.length };
      case 'policy':
        return source.play(engine => this.sample(engine, source, sampling));
    }
  }

  private async sample(
    engine: RemoteEngine,
    { given, seed }: TurnSource & { from: 'policy' },
    sampling: SamplingOptions,
  ): Promise<Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'> & { given: number }> {
    // Sends only the tokens that the engine has not cached yet. A newly loaded engine has cached none, so it receives
    // the complete row.
    const known = this.read?.engine === engine ? this.read.length : 0;
    const append = [...this.held.ids.slice(known), ...given];
    const shows = this.held.shows
      .filter(({ at }) => at >= known)
      .map(({ at, picture }) => ({ at: at - known, picture }));
    const max_new_tokens = Math.max(1, sampling.max_new_tokens - given.length);
    engine.watch(this.row, this.onTokens);
    try {
      const [sampled] = await engine.generate([{ row: this.row, append, seed, ...(shows.length > 0 && { shows }) }], {
        ...sampling,
        max_new_tokens,
      });
      this.read = { engine, length: this.held.ids.length + given.length + sampled.ids.length };
      return {
        ids: [...given, ...sampled.ids],
        logprobs: [...given.map(() => 0), ...sampled.logprobs],
        finish: sampled.finish,
        given: given.length,
      };
    } finally {
      engine.watch(null);
    }
  }
}
