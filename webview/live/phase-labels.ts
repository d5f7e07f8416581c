// Texts about the trainer's activity while no episode is running.
import type { RunSummary } from '../../extension/protocol/page-state';
import { displayStatus } from '../shared/run-status';

export interface PhaseLabels {
  title: string;
  text: string;
  /** Button to show; undefined for none. */
  action?: 'resume' | 'episodes' | 'log';
}

const ended: Record<'stopped' | 'finished' | 'failed' | 'interrupted', PhaseLabels> = {
  finished: { title: 'The run is finished', text: 'Its episodes are on the Episodes page.', action: 'episodes' },
  stopped: { title: 'The run was stopped', text: 'Resume it to see its next episode here.', action: 'resume' },
  failed: { title: 'The run failed', text: 'See its log for the reason.', action: 'log' },
  interrupted: { title: 'The run was interrupted', text: 'Resume it to see its next episode here.', action: 'resume' },
};

const elsewhere = (host: string): PhaseLabels => ({
  title: 'The trainer runs on another machine',
  text: `Tokens are shown only by an editor on ${host}, because they need a connection to the trainer. Complete episodes are on the Episodes page.`,
  action: 'episodes',
});

/**
 * Texts for the phase of a run without a current episode. `chosen` is true if the user watches only one tag;
 * `connected` is true if the trainer has sent reports.
 */
export function phaseLabels(run: RunSummary, chosen: boolean, connected: boolean): PhaseLabels {
  const status = displayStatus(run);
  const { step, phase } = run.status;
  switch (status) {
    case 'paused':
      return { title: 'The run is paused', text: 'Resume it to see its next episode here.', action: 'resume' };
    case 'stopping':
      return { title: 'The run is stopping', text: 'If the run is resumed, the unfinished step is repeated.' };
    case 'queued':
      return { title: 'The run is queued', text: 'Its job waits until resources of the cluster are free.' };
    case 'starting':
      return { title: 'The run is starting', text: 'Model and environments are being loaded.' };
    case 'running':
      if (run.otherHost !== undefined && !connected) return elsewhere(run.otherHost);
      break;
    default:
      return ended[status];
  }
  const next = step + 1;
  switch (phase) {
    case 'update':
      return {
        title: `Updating the policy`,
        text: `The episodes of step ${next} are complete. The next rollout starts after the update.`,
      };
    case 'validation':
      return { title: 'Validation', text: `Validation after step ${step} is starting.` };
    case 'checkpoint':
      return {
        title: 'Writing a checkpoint',
        text: `Saving the weights after step ${step}; then the next rollout starts.`,
      };
    case 'download':
      return { title: 'Downloading the model', text: 'Episodes start when the download is complete.' };
    case 'rollout':
      return {
        title: 'Episodes are starting',
        text: `Environments of step ${next} are being reset.${chosen ? ' If no episode appears, no environment of this step has the selected tag.' : ''}`,
      };
    default:
      return { title: 'Between two steps', text: `Step ${next} is next.` };
  }
}
