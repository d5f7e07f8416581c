// Generator for replaying an episode: each turn's tokens are the stored ones, hand-written ones, or sampled by a policy
// after hand-written ones. The agent proxy uses it like the engine, so prompts, parsing, rewards and context are those
// of training. Invariant: a row's ids equal the context's, whatever the source of its tokens.
import { appendAll } from '../../common/lists';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { RemoteEngine } from '../../engine/remote-engine';
import type { TextGenerator } from '../rollout/rollout-request';

/** The source of a turn's tokens. */
export type TurnSource =
  | { from: 'stored'; row: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'> }
  | { from: 'hand'; ids: number[] }
  /** `given` precedes the sampled tokens. */
  | { from: 'policy'; given: number[]; seed: number; play: PolicyTurn };

/** Runs work with the policy, once it is loaded. */
export type PolicyTurn = <T>(work: (engine: RemoteEngine) => Promise<T>) => Promise<T>;

export interface ScriptedTurn {
  /** All ids of the row before the response. */
  prompt: readonly number[];
  row: GeneratedRow;
  /** Number of tokens at the response's start that were given. */
  given: number;
}

export class ScriptedTurns implements TextGenerator {
  /** The row's content. */
  private held: number[] = [];
  /** The engine that has read part of it, and how many tokens. */
  private read: { engine: RemoteEngine; length: number } | undefined;

  /**
   * @param row name of the row at the engine
   * @param source returns the source of the next turn's tokens; may wait for the user
   */
  constructor(
    private readonly row: string,
    private readonly source: (prompt: readonly number[]) => Promise<TurnSource>,
    private readonly onTurn: (turn: ScriptedTurn) => void,
    private readonly onTokens: (ids: number[], logprobs: number[]) => void,
  ) {}

  async generate([request]: readonly GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]> {
    appendAll(this.held, request.append);
    const prompt = [...this.held];
    const source = await this.source(prompt);
    const { ids, logprobs, finish, given } = await this.answer(source, sampling);
    appendAll(this.held, ids);
    const row = { row: request.row, ids, logprobs, finish };
    this.onTurn({ prompt, row, given });
    return [row];
  }

  async release(rows: readonly string[]): Promise<void> {
    if (rows.length === 0) return; // there is only one row
    this.held = [];
    const { read } = this;
    this.read = undefined;
    await read?.engine.release([this.row]).catch(() => undefined); // the engine may have been replaced by another model
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
    // Start over if another model was loaded; append turns that no engine has read.
    const known = this.read?.engine === engine ? this.read.length : 0;
    const append = [...this.held.slice(known), ...given];
    const max_new_tokens = Math.max(1, sampling.max_new_tokens - given.length);
    engine.watch(this.row, this.onTokens);
    try {
      const [sampled] = await engine.generate([{ row: this.row, append, seed }], { ...sampling, max_new_tokens });
      this.read = { engine, length: this.held.length + given.length + sampled.ids.length };
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
