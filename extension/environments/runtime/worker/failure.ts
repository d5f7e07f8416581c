// Formats a fault as a sentence for the user, which contains the environment, the location in the source, the seed, the
// preceding actions and the remedy.
import type { EnvironmentFailure, ScoreRequest } from '../../../protocol/environment-link';
import type { Bundle } from '../build/build';
import { sourceLocation } from '../source-location';
import { shown } from './returned-values';
import type { Fault, WorkItem } from '../threads/worker-messages';

export interface FailureContext {
  tag: string;
  source: string;
  bundle: Pick<Bundle, 'filename' | 'map'>;
  timeoutMs: number;
  /** Action names by id; undefined if actions are texts. */
  names?: Record<number, string>;
  /** The item that failed; undefined while the environment is loaded. */
  item?: WorkItem;
  /** The item's episode, with the actions that were executed before the item. */
  episode?: { seed: number; member: number; actions: readonly (number | string)[] };
}

/** Returns the name of the method that an item calls; `acting` is false if the item has no current action. */
function calledIn(item: Exclude<WorkItem, { do: 'load' }>, acting: boolean): string {
  if (item.do !== 'replay') return item.do;
  return acting ? 'step' : 'reset';
}

const scoreCall = (request: ScoreRequest): string => ('turn' in request ? 'score' : 'scoreEpisode');

/** Maximum number of actions listed in the sentence; earlier actions are only counted. */
const actionsShown = 20;

/** Returns the failure that reports a fault together with its context. */
export function failureOf(fault: Fault, context: FailureContext): EnvironmentFailure {
  const { tag, source, item, episode, names } = context;
  const location = sourceLocation(fault.stack, context.bundle);
  const name = (action: number | string) => (typeof action === 'number' && names?.[action]) || shown(action);
  const parts = [`environment ${tag} (${location ?? source}) ${fault.what}`];
  if (fault.kind === 'timed_out' && (!item || item.do === 'load')) parts.push('while it was loaded');
  if (item && item.do !== 'load') {
    // Score functions are called after all actions of a step, without an action.
    const scoring = item.do === 'step' && item.score !== undefined && fault.action < 0;
    const before = scoring ? Infinity : Math.max(fault.action, 0);
    const executed = item.do === 'step' || item.do === 'replay' ? item.actions.slice(0, before) : [];
    const acting =
      (item.do === 'step' || item.do === 'replay') && fault.action >= 0 ? item.actions[fault.action] : undefined;
    const call = scoring ? scoreCall(item.score!) : calledIn(item, acting !== undefined);
    parts.push(`in ${call}(${acting === undefined ? '' : name(acting)})`);
    if (episode) {
      const done = [...episode.actions, ...executed];
      const hidden = done.length - actionsShown;
      const list = done.slice(-actionsShown).map(name);
      parts.push(`at seed ${episode.seed}, member ${episode.member}`);
      parts.push(
        done.length === 0
          ? 'before any action'
          : `after ${hidden > 0 ? `${hidden} actions and ` : ''}[${list.join(', ')}]`,
      );
    }
  }
  return {
    kind: fault.kind,
    message: `${parts.join(' ')}: ${fault.remedy}`,
    at: location ?? source,
    ...(fault.config && { config: fault.config }),
  };
}
