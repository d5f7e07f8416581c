// The part of the dashboard's bar that shows the progress and speed of the run as numbers. The length of a line shows
// the finished share of the run.
import { html, type TemplateResult } from 'lit';
import type { RunSummary } from '../../../extension/protocol/page-state';
import { hostOfJob } from '../../../extension/run-data/job-record';
import { progressOf } from '../../../extension/run-data/run-progress';
import { formatDuration, formatNumber, formatPercent } from '../../shared/format';

export function runFacts({ status, live, job, trainer }: RunSummary): TemplateResult {
  const { unit, done, of } = progressOf(status);
  const facts: [label: string, value: string, title: string][] = [
    of > 0 || !trainer
      ? [unit, `${done} / ${of}`, `${unit}s finished / planned`]
      : [unit, String(done), `${unit}s finished; the trainer’s files do not say how many are planned`],
  ];
  if (trainer) facts.unshift(['trainer', trainer.name, `Files of ${trainer.name} in ${trainer.source}`]);
  if (status.success !== null)
    facts.push(
      status.success_of === 'val'
        ? ['validation', formatPercent(status.success), 'Success in the newest validation']
        : ['success', formatPercent(status.success), 'Success of the newest training step'],
    );
  if (live && status.eta_s !== null)
    facts.push(['ETA', formatDuration(status.eta_s), 'Estimated time remaining at the current speed']);
  if (live && status.tokens_per_s !== null)
    facts.push(['tokens/s', formatNumber(status.tokens_per_s), 'Tokens per second, averaged over the complete step']);
  if (job) facts.push(['on', hostOfJob(job), `Ray job ${job.id} of ${job.address}`]);
  return html`<dl class="facts"
    >${facts.map(([label, value, title]) => html`<div title=${title}><dt>${label}</dt><dd>${value}</dd></div>`)}</dl
  >`;
}

export function progressBar({ status }: RunSummary): TemplateResult {
  const { unit, done, of } = progressOf(status);
  const percent = of > 0 ? Math.min(100, (done / of) * 100) : 0;
  return html`<div
    class="progress"
    role="progressbar"
    aria-label=${`${unit}s done`}
    aria-valuemin="0"
    aria-valuemax=${of}
    aria-valuenow=${done}
  >
    <span style="width:${percent}%"></span>
  </div>`;
}
