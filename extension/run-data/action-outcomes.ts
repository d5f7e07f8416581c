// Outcome of each action that the model wrote in a turn: whether it was executed and, if not, the reason. The reason is
// derived from the recorded actions by RAGEN's rules. First, an answer with more actions than the turn's limit is
// truncated. Then unknown names are dropped. The remaining actions are executed until the episode ends or the episode's
// action budget is used up.
import type { EpisodeTurn } from './episode';
import { callText } from './tool-call';
import { between } from '../common/tagged-text';

export interface ActionOutcome {
  name: string;
  /** Reason why the action was not executed; null if it was executed. */
  reason: string | null;
}

/**
 * Returns the outcomes in the order of the answer; each tool call counts as an action. `endsEpisode`: whether the environment ended the episode in this
 * turn.
 */
export function actionOutcomes(turn: EpisodeTurn, endsEpisode: boolean): ActionOutcome[] {
  const { parsed, executed, actions_left, calls } = turn;
  if (calls) return calls.map(call => ({ name: callText(call), reason: null }));
  const outcomes: ActionOutcome[] = [];
  let done = 0;
  for (const name of parsed) {
    if (done < executed.length && sameName(name, executed[done])) {
      done++;
      outcomes.push({ name, reason: null });
    } else if (done < executed.length) {
      outcomes.push({ name, reason: 'not an action of this environment' });
    } else {
      outcomes.push({ name, reason: leftOver(executed.length, actions_left ?? Infinity, endsEpisode) });
    }
  }
  return [...outcomes, ...cutOff(turn).map(name => ({ name, reason: 'over max_actions_per_turn' }))];
}

/** Returns the common reason why all actions after the last executed action were not executed. */
function leftOver(executed: number, actionsLeft: number, endsEpisode: boolean): string {
  if (executed > 0 && executed >= actionsLeft) return 'no actions left';
  if (executed > 0 && endsEpisode) return 'the episode had ended';
  return 'not an action of this environment';
}

/**
 * Returns the actions that were cut off from the answer: the parts of the raw answer after the parsed actions. The raw
 * answer is split at RAGEN's default separator. Empty if the first parts of the raw answer differ from the parsed
 * actions.
 */
function cutOff({ raw, parsed }: EpisodeTurn): string[] {
  const answer = (between(raw, '<answer>', '</answer>') ?? between(raw, '<ans>', '</ans>'))?.inner;
  if (answer === undefined || parsed.length === 0) return [];
  const written = answer
    .split('||')
    .map(name => name.trim())
    .filter(name => name !== '');
  return parsed.every((name, i) => written[i] === name) ? written.slice(parsed.length) : [];
}

const sameName = (a: string, b: string) => a.trim().toLowerCase() === b.trim().toLowerCase();
