// A demonstrator that follows an environment's solver, for supervised fine-tuning. It implements the engine's
// TextGenerator, so the agent proxy builds prompts, contexts and masks of demonstrations exactly as in rollouts. If the
// state has a known format, the thought describes the state; otherwise the thought lists the plan.
import type { GeneratedRow, GenerationRow } from '../../engine/generation-calls';
import type { AnswerTag } from '../../common/tagged-text';
import { RandomStream } from '../../engine/sampling/random-stream';
import { callsOf, isReadable } from '../../../envs/api/tools/call-action';
import type { ToolSyntax } from '../../models/tokenizer/tool-syntax';
import { writtenCalls } from '../rollout/tool-calls';
import type { TextGenerator } from '../rollout/rollout-request';
import { demonstrate } from './demonstrated-response';
import type { DemonstratorTools } from './demonstrator';

export interface SolverOptions {
  /** Maximum number of actions of a solution; an episode with a longer solution is treated as unsolved. */
  maxDepth: number;
  actionsPerTurn: number;
  actionSeparator: string;
  /** True if actions are named moves, false if they are free text. */
  named: boolean;
  /** True if responses begin with `<think>`, false if they begin with the answer's tag. */
  thinks: boolean;
  /** Tag of answers (`workbench.answer_tag`). */
  tag: AnswerTag;
  /** How the model writes tool calls; undefined if the environment has no tools. */
  tools?: ToolSyntax | undefined;
}

/** What a demonstrator that follows a solver calls. */
export interface SolverTools extends DemonstratorTools {
  /** Returns the true state of a row's episode, for states that are pictures; undefined if the environment states none. */
  stateOf?(row: string): string | undefined;
}

export class SolverDemonstrator implements TextGenerator {
  constructor(
    private readonly tools: SolverTools,
    private readonly options: SolverOptions,
  ) {}

  async generate(rows: readonly GenerationRow[]): Promise<GeneratedRow[]> {
    const plans = await this.tools.solve(rows.map(({ row }) => row));
    return rows.map(given => {
      const { row } = given;
      const text = this.answer(given, plans.get(row) ?? []);
      const ids = [...this.tools.encode(text), this.tools.stopTokenId];
      return { row, ids, logprobs: ids.map(() => 0), finish: 'stop' as const };
    });
  }

  release(): void {
    // There is nothing to release, because rows have no cached state.
  }

  /**
   * Returns the response text after the prompt's `<think>` or answer tag. Without a plan, the answer is empty and the
   * episode fails.
   */
  private answer(given: GenerationRow, plan: readonly string[]): string {
    const { maxDepth, actionsPerTurn, actionSeparator, named, thinks, tag, tools } = this.options;
    if (tools) return this.toolAnswer(plan.length > maxDepth ? undefined : plan[0], tools);
    const actions = plan.length > maxDepth ? [] : plan.slice(0, actionsPerTurn);
    const answer = `${actions.join(` ${actionSeparator} `)}</${tag}>`;
    if (!thinks) return answer;
    const state = this.stateText(given);
    const seen = actions.length > 0 && demonstrate(state, actions, 'looking', actionsPerTurn, new RandomStream(0));
    return `${seen ? seen.thought : planned(actions, named)}</think><${tag}>${answer}`;
  }

  /** Returns the newest state as text; if it is shown as a picture, the true state. */
  private stateText({ row, append, shows = [] }: GenerationRow): string {
    const stated = shows.length > 0 ? this.tools.stateOf?.(row) : undefined;
    if (stated !== undefined) return `State:\n${stated}`;
    const prompt = this.tools.decode(append);
    return prompt.slice(prompt.lastIndexOf('State:'));
  }

  /** Returns the response text with which an episode with tools continues: calls, or an answer. */
  private toolAnswer(action: string | undefined, syntax: ToolSyntax): string {
    const { thinks, tag } = this.options;
    const calls = action === undefined ? undefined : callsOf(action)?.filter(isReadable);
    const thought = calls
      ? `I call ${calls.map(({ name }) => name).join(' and ')}.`
      : planned(action ? [action] : [], false);
    const rest = calls ? writtenCalls(calls, syntax) : `<${tag}>${action ?? ''}</${tag}>`;
    return thinks ? `${thought}</think>${rest}` : rest;
  }
}

function planned(actions: readonly string[], named: boolean): string {
  if (actions.length === 0) return 'I see no way.';
  return named ? `The next steps are ${actions.join(', then ')}.` : `The answer is ${actions.join(', then ')}.`;
}
