// The system message of an episode (RAGEN's ctx_manager): opener, instruction of the task, meaning of the state's
// symbols, and available actions. All parts come from the configured environment: the legend lists the symbols that are
// configured, and coordinates are explained only if the states contain coordinates.
import type { LoadedEnvironment } from '../../protocol/environment-link';
import { withAnswerTag, type AnswerTag } from '../../common/tagged-text';

const opener = "You're a helpful assistant. ";

/** The options that the message depends on. */
export interface SystemMessageOptions {
  /**
   * The instruction in `custom_envs.<tag>`. If it is set, even to an empty text, the environment's instruction is not
   * used.
   */
  env_instruction?: string | null;
  max_actions_per_traj: number;
  max_actions_per_turn: number;
  action_sep: string;
  /** Name of the tag that encloses answers in the instruction; `answer` by default. */
  answer_tag?: AnswerTag | undefined;
  /** What the message says about the parts of an answer; undefined if there is nothing to say. */
  format?: string | undefined;
  /** What the message says about tools; undefined if there are none. */
  tools?: string | undefined;
}

/** Returns the system message for episodes of `environment`. */
export function systemMessage(
  environment: Pick<LoadedEnvironment, 'instruction' | 'legend' | 'actions' | 'config'>,
  options: SystemMessageOptions,
): string {
  const instruction = options.env_instruction ?? environment.instruction;
  const parts = [opener + withAnswerTag(instruction, options.answer_tag)];
  const legend = Object.entries(environment.legend).map(([symbol, meaning]) => `${symbol}: ${meaning}`);
  if (legend.length > 0) parts.push('Symbols in the state:', legend.join(', '));
  if (environment.config.observation_format === 'coord')
    parts.push('The state lists the (row, column) positions of each kind of thing, counted from zero.');
  const names = Object.values(environment.actions ?? {});
  if (names.length > 0)
    parts.push(
      'Available actions:',
      names.join(', '),
      `You can take up to ${options.max_actions_per_traj} actions in all, at most ${options.max_actions_per_turn} per answer, separated by " ${options.action_sep} ".`,
    );
  if (options.format !== undefined) parts.push(options.format);
  if (options.tools !== undefined) parts.push(options.tools);
  return parts.join('\n');
}
