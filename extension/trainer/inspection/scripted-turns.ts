// The generator of an episode that is played again: each turn's tokens are those that were stored, those that were given by hand, or what
// a policy samples, behind what was given of the turn. The agent proxy that asks does not know the difference, so that prompts, parsing,
// rewards and context are those of training. Invariant: a row's ids are what the context holds, wherever its tokens come from.
import { appendAll } from '../../protocol/lists';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../engine/engine';
import type { RemoteEngine } from '../engine/remote-engine';
import type { Generator } from '../rollout/agent-proxy';

/** Where a turn's tokens come from. */
export type TurnSource =
  | { from: 'stored'; row: Pick<GeneratedRow, 'ids' | 'logprobs' | 'finish'> }
  | { from: 'hand'; ids: number[] }
  /** `given` stand before what is sampled. */
  | { from: 'policy'; given: number[]; seed: number; play: PolicyTurn };

/** Does some work with the policy, when it is loaded. */
export type PolicyTurn = <T>(work: (engine: RemoteEngine) => Promise<T>) => Promise<T>;

export interface ScriptedTurn {
  /** All ids of the row before the answer. */
  prompt: readonly number[];
  row: GeneratedRow;
  /** The first tokens of the answer, which were given. */
  given: number;
}

export class ScriptedTurns implements Generator {
  /** What the row holds. */
  private held: number[] = [];
  /** How much of it an engine has read. */
  private read: { engine: RemoteEngine; length: number } | undefined;

  /**
   * @param row name of the row at the engine
   * @param source gives where the next turn's tokens come from; may take its time
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
    if (rows.length === 0) return; // there is but one
    this.held = [];
    const { read } = this;
    this.read = undefined;
    await read?.engine.release([this.row]).catch(() => undefined); // the engine may have made room for another model
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
    // Another model was loaded meanwhile, or turns were played that no engine has read.
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
