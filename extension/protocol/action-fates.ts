// What became of each action that the model wrote in a turn. The run folder records the parsed names and the executed ones; which
// were left out, and why, follows from RAGEN's rules: unknown names are dropped, the rest runs until the episode ends or its
// actions are used up, and an answer longer than the turn's limit is cut before that.
import type { EpisodeTurn } from './run-folder';
import { between } from './tagged-text';

export interface ActionFate {
  name: string;
  /** Null when the action was executed, else why not. */
  reason: string | null;
}

/** Fates in the order of the answer. `endsEpisode`: the turn is the episode's last and the environment ended it. */
export function actionFates(turn: EpisodeTurn, endsEpisode: boolean): ActionFate[] {
  const { parsed, executed, actions_left } = turn;
  const fates: ActionFate[] = [];
  let done = 0;
  for (const name of parsed) {
    if (done < executed.length && sameName(name, executed[done])) {
      done++;
      fates.push({ name, reason: null });
    } else if (done < executed.length) {
      fates.push({ name, reason: 'not an action of this environment' });
    } else {
      fates.push({ name, reason: leftOver(executed.length, actions_left, endsEpisode) });
    }
  }
  return [...fates, ...cutOff(turn).map(name => ({ name, reason: 'over the limit of actions a turn' }))];
}

/** Why nothing after the last executed action ran. */
function leftOver(executed: number, actionsLeft: number, endsEpisode: boolean): string {
  if (executed > 0 && executed >= actionsLeft) return 'no actions left';
  if (executed > 0 && endsEpisode) return 'the episode had ended';
  return 'not an action of this environment';
}

/** Actions in the raw answer behind the parsed ones, split as RAGEN's default separator does; none where that does not fit. */
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
