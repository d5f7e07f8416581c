// The message shown before the run's first step: what the run is doing, or why it has ended.
import type { TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';
import { notice } from '../components/notice';
import { displayStatus } from '../shared/run-status';

export function emptyView(run: RunSummary, openLog: () => void): TemplateResult {
  const { status, name } = run;
  const { episodes } = status;
  const displayed = displayStatus(run);
  const isWorking = ['queued', 'starting', 'running'].includes(displayed);
  if (run.trainer)
    return notice({
      kind: 'empty',
      title: 'No metrics',
      text: `The files of ${run.trainer.name} in ${run.trainer.source} contain no metrics yet. The Episodes page shows the rollouts.`,
      action: { label: 'Open the log', run: openLog },
    });
  const atWork =
    displayed === 'queued'
      ? `${name} is queued as Ray job ${run.job?.id ?? ''}. It starts when resources of the cluster are free.`
      : episodes
        ? `${episodes.done} of ${episodes.of} episodes finished. Results appear when all are finished.`
        : `${name} is running (${status.phase || displayed}). The first step takes longest, because the model is loaded first. The metrics of a step appear here when the step ends.`;
  const ended = `The run is ${displayed}, and ${episodes ? `${episodes.done} of ${episodes.of} episodes have finished` : 'no step has finished'}. See the log for details.`;
  const waits = episodes ? 'No results yet' : 'No step has finished yet';
  return notice({
    kind: status.error ? 'error' : 'empty',
    title: isWorking ? waits : `The run is ${displayed}`,
    text: isWorking ? atWork : (status.error ?? ended),
    action: { label: 'Open the log', run: openLog },
  });
}
