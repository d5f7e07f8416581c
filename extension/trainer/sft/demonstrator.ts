// A demonstrator that plays episodes in place of the model. It implements the engine's TextGenerator, so the agent
// proxy builds prompts, contexts and masks of demonstrations exactly as in rollouts. The planned actions come from the
// environments' solvers, which the model cannot call.
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import { RandomStream } from '../../engine/sampling/random-stream';
import type { TextGenerator } from '../rollout/rollout-request';
import { demonstrate } from './demonstrated-response';

export interface DemonstratorOptions {
  /** Probability that a turn has style `looking` instead of `guessing`. Callers may change it between rollouts. */
  looking: number;
  actionsPerTurn: number;
  actionSeparator: string;
}

/** Functions of the environments and the tokenizer that a demonstrator calls. */
export interface DemonstratorTools {
  /** Returns, for each episode, the names of the solver's next actions, in order. */
  solve(episodes: readonly string[]): Promise<Map<string, string[]>>;
  encode(text: string): number[];
  decode(ids: readonly number[]): string;
  stopTokenId: number;
}

export class Demonstrator implements TextGenerator {
  constructor(
    private readonly tools: DemonstratorTools,
    readonly options: DemonstratorOptions,
  ) {}

  async generate(rows: readonly GenerationRow[], _sampling: SamplingOptions): Promise<GeneratedRow[]> {
    const plans = await this.tools.solve(rows.map(({ row }) => row));
    return rows.map(({ row, append, seed }) => {
      const ids = [...this.tools.encode(this.answer(row, append, plans.get(row) ?? [], seed)), this.tools.stopTokenId];
      return { row, ids, logprobs: ids.map(() => 0), finish: 'stop' };
    });
  }

  release(): void {
    // There is nothing to release, because rows have no cached state.
  }

  /** Returns the response text after the prompt's `<think>`. */
  private answer(row: string, append: readonly number[], plan: readonly string[], seed: number): string {
    const stream = new RandomStream(seed);
    const { looking, actionsPerTurn, actionSeparator } = this.options;
    const manner = stream.uniform() < looking ? 'looking' : 'guessing';
    const text = this.tools.decode(append);
    const state = text.slice(text.lastIndexOf('State:'));
    const shown =
      demonstrate(state, plan, manner, actionsPerTurn, stream) ??
      demonstrate(state, plan, 'guessing', actionsPerTurn, stream);
    if (!shown) throw new Error(`demonstrator: the state of ${row} has an unknown format: ${state.slice(0, 80)}`);
    return `${shown.thought}</think><answer>${shown.actions.join(` ${actionSeparator} `)}</answer>`;
  }
}
