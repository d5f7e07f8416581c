// Formats a fault as a sentence for the user, which contains the environment, the location in the source, the seed, the
// preceding actions and the remedy.
import type { EnvironmentFailure } from '../../../protocol/environment-link';
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
    const executed = item.do === 'step' || item.do === 'replay' ? item.actions.slice(0, Math.max(fault.action, 0)) : [];
    const acting =
      (item.do === 'step' || item.do === 'replay') && fault.action >= 0 ? item.actions[fault.action] : undefined;
    const call = item.do === 'replay' && acting === undefined ? 'reset' : item.do === 'replay' ? 'step' : item.do;
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
