// A demonstrator that plays episodes in place of the model. It implements the engine's TextGenerator, so the agent
// proxy builds prompts, contexts and masks of demonstrations exactly as in rollouts. The planned actions come from the
// environments' solvers, which the model cannot call.
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import { RandomStream } from '../../engine/sampling/random-stream';
import type { TextGenerator } from '../rollout/rollout-request';
import type { Demonstration } from './demonstrated-response';

/** The turn that a demonstrator responds to. */
export interface DemonstratedTurn {
  /** The row, which is the episode's id. */
  row: string;
  /** The observation as the model sees it, from `State:` on. */
  state: string;
  /** Names of the solver's next actions, in order. */
  plan: readonly string[];
  /** Random numbers of this turn. */
  stream: RandomStream;
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
  /**
   * @param respond returns the response to a turn; null if the state has an unknown format, which is an error
   * @param actionSeparator separator between the actions of an answer (`agent_proxy.action_sep`)
   */
  constructor(
    private readonly tools: DemonstratorTools,
    private readonly respond: (turn: DemonstratedTurn) => Demonstration | null,
    private readonly actionSeparator: string,
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
    const text = this.tools.decode(append);
    const state = text.slice(text.lastIndexOf('State:'));
    const shown = this.respond({ row, state, plan, stream: new RandomStream(seed) });
    if (!shown) throw new Error(`demonstrator: the state of ${row} has an unknown format: ${state.slice(0, 80)}`);
    return `${shown.thought}</think><answer>${shown.actions.join(` ${this.actionSeparator} `)}</answer>`;
  }
}
