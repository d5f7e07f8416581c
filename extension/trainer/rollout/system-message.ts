// The system message of an episode (RAGEN's ctx_manager): opener, the task's instruction, what the symbols of the state mean, and
// which actions there are. Everything is taken from the environment as configured, so a grid with another alphabet is explained
// with that alphabet, and coordinates are announced where the state is given in coordinates.
import type { LoadedEnvironment } from '../../protocol/environment-link';
import { withAnswerTag, type AnswerTag } from '../../protocol/tagged-text';

const opener = "You're a helpful assistant. ";

/** What of the configuration the message depends on. */
export interface SystemMessageOptions {
  /** The tag's own instruction; takes the place of the environment's, also when it is empty. */
  env_instruction?: string | null;
  max_actions_per_traj: number;
  max_actions_per_turn: number;
  action_sep: string;
  /** What the answers that the instruction shows stand in; `answer` when left out. */
  answer_tag?: AnswerTag | undefined;
}

/** Text of the system message for episodes of `environment`. */
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
  return parts.join('\n');
}
