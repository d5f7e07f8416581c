// The displayed status of a run. If the stored status is active but the trainer process is not alive, the run was
// interrupted. A run whose job waits for resources of a cluster is queued.
import type { RunSummary } from '../../extension/protocol/page-state';
import { isQueuedStatus } from '../../extension/run-data/job-record';
import { isInterrupted } from '../../extension/run-data/run-progress';

export type DisplayStatus = RunSummary['status']['state'] | 'interrupted' | 'queued';

/** Returns the displayed status of a run. */
export const displayStatus = ({ status, live }: Pick<RunSummary, 'status' | 'live'>): DisplayStatus =>
  isInterrupted({ status, live }) ? 'interrupted' : isQueuedStatus(status) ? 'queued' : status.state;

export function commandsFor(displayed: DisplayStatus): readonly ('pause' | 'resume' | 'stop')[] {
  switch (displayed) {
    case 'queued':
      return ['stop'];
    case 'starting':
    case 'running':
      return ['pause', 'stop'];
    case 'paused':
      return ['resume', 'stop'];
    case 'interrupted':
    case 'stopped':
    case 'failed':
      return ['resume'];
    case 'stopping':
    case 'finished':
      return [];
  }
}
