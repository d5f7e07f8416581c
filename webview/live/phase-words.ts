// Describes what the trainer is doing while no episode is running.
import type { RunSummary } from '../../extension/protocol/pages';
import { standingOf } from '../shared/run-status';

export interface PhaseWords {
  title: string;
  text: string;
  /** The button to show. */
  action?: 'resume' | 'episodes' | 'log';
}

const ended: Record<'stopped' | 'finished' | 'failed' | 'interrupted', PhaseWords> = {
  finished: { title: 'The run is finished', text: 'Its episodes are kept.', action: 'episodes' },
  stopped: { title: 'The run was stopped', text: 'Resume it, and its next episode shows here.', action: 'resume' },
  failed: { title: 'The run failed', text: 'Its log says why.', action: 'log' },
  interrupted: { title: 'The run was interrupted', text: 'Resume it, and its next episode shows here.', action: 'resume' }, // prettier-ignore
};

/** The phase of a run without a current episode; `chosen` if the user watches only one tag. */
export function phaseWords(run: RunSummary, chosen: boolean): PhaseWords {
  const standing = standingOf(run);
  const { step, phase } = run.status;
  switch (standing) {
    case 'paused':
      return { title: 'The run is paused', text: 'Resume it, and its next episode shows here.', action: 'resume' };
    case 'stopping':
      return { title: 'The run is stopping', text: 'A resume makes the step in hand again.' };
    case 'starting':
      return { title: 'The run starts', text: 'Model and environments are being loaded.' };
    case 'running':
      break;
    default:
      return ended[standing];
  }
  const next = step + 1;
  switch (phase) {
    case 'update':
      return { title: `Updating the policy`, text: `The episodes of step ${next} are in; it learns from them, then plays the next ones.` }; // prettier-ignore
    case 'validation':
      return { title: 'Validation', text: `The policy is tested after step ${step}: its first episode begins.` };
    case 'checkpoint':
      return { title: 'Writing a checkpoint', text: `The weights after step ${step} are kept; then it plays on.` };
    case 'download':
      return { title: 'Fetching the model', text: 'Episodes begin when it is here.' };
    case 'rollout':
      return { title: 'Episodes begin', text: `Environments of step ${next} are being reset${chosen ? ', or none of them is of the tag chosen above' : ''}.` }; // prettier-ignore
    default:
      return { title: 'Between two steps', text: `Step ${next} comes next.` };
  }
}
