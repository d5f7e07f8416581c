// Formats state and progress of a run as translated labels, for all views.
import * as vscode from 'vscode';
import type { RunSummary } from '../../protocol/page-state';
import { hostOfJob, isQueuedStatus } from '../../run-data/job-record';
import type { RunStatus } from '../../run-data/run-status-file';
import { progressOf } from '../../run-data/run-progress';
import { briefly, duration, isActive, percent, runPhase, waitsBecause, type RunPhase } from './run-format';

/**
 * Formats progress as `step 12/40 · validation 61 %`. A success rate that is unknown is omitted. Before the first
 * validation, the training success is shown.
 */
export function formatProgress({ status, trainer }: RunSummary): string {
  const { unit, done, of } = progressOf(status);
  const progress =
    unit === 'step' ? vscode.l10n.t('step {0}/{1}', done, of) : vscode.l10n.t('episode {0}/{1}', done, of);
  const parts = [
    isQueuedStatus(status)
      ? vscode.l10n.t('queued')
      : of > 0
        ? progress
        : trainer
          ? vscode.l10n.t('step {0}', done)
          : vscode.l10n.t('starting'),
    ...(status.success === null ? [] : [formatSuccess(status.success, status.success_of)]),
  ];
  return parts.join(' · ');
}

const formatSuccess = (share: number, of: RunStatus['success_of']): string =>
  of === 'val' ? vscode.l10n.t('validation {0}', percent(share)) : vscode.l10n.t('success {0}', percent(share));

/**
 * Formats the state of a run. The label of a running run is the phase of its current step. If the trainer has paused
 * the run, the label contains the reason. If the trainer does not respond, the label says for how long.
 */
export function formatState(run: RunSummary): string {
  const { state, phase, activity, download } = run.status;
  const because = waitsBecause(run);
  if (run.silent_s !== undefined && isActive(run))
    return vscode.l10n.t('not responding for {0}', duration(run.silent_s));
  const labels: Record<RunPhase, string> = {
    running: download
      ? vscode.l10n.t('downloading the model, {0}', percent(download.bytes / download.total))
      : isQueuedStatus(run.status)
        ? vscode.l10n.t('queued')
        : state === 'running'
          ? [phase, ...(activity === undefined ? [] : [activity])].join(' · ')
          : state,
    paused: because === undefined ? vscode.l10n.t('paused') : vscode.l10n.t('paused: {0}', briefly(because)),
    finished: vscode.l10n.t('finished'),
    stopped: run.trainer ? vscode.l10n.t('not followed') : vscode.l10n.t('stopped'),
    failed: vscode.l10n.t('failed'),
    interrupted: vscode.l10n.t('interrupted: the trainer process exited unexpectedly'),
  };
  return labels[runPhase(run)];
}

/** Formats the host on which the run's job runs, as `on node-7`; undefined for a run on this machine. */
export const formatPlace = ({ job }: Pick<RunSummary, 'job'>): string | undefined =>
  job && vscode.l10n.t('on {0}', hostOfJob(job));
