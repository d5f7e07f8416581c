// Questions before a run continues from a checkpoint: which checkpoint, and, if later checkpoints exist, whether to
// fork the run or to discard its later part. The questions stay open when a page takes the focus, because a run that
// starts at the same time opens its dashboard.
import * as vscode from 'vscode';
import { discardedWork, formatDiscarded } from '../../../run-data/discarded-work';
import { notifyInformation } from '../../notifications';
import { showQuickPick } from '../../questions';
import { describeCheckpoints, type CheckpointEntry } from '../../run-files/stored-checkpoints';
import { formatBytes, formatStart, percent } from '../run-format';
import type { Run } from '../run-store';

/** Asks for a checkpoint of the run, newest first. Returns undefined if there is none, or if the user cancels. */
export async function askForCheckpoint(run: Run, placeHolder: string): Promise<CheckpointEntry | undefined> {
  const { name } = run.summary;
  const entries = await describeCheckpoints(run.folder, await run.reader.checkpoints());
  if (entries.length === 0) return void notifyInformation(vscode.l10n.t('Run {0} has no checkpoint yet.', name));
  const items = entries.map((entry, i) => ({ ...inList(entry, i === 0), entry }));
  const options = { placeHolder, matchOnDescription: true };
  return (await showQuickPick(items, options))?.entry;
}

/** Formats a checkpoint as a list item: step, validation, time and size. */
function inList({ step, validation, saved, bytes }: CheckpointEntry, isNewest: boolean): vscode.QuickPickItem {
  const parts = [
    validation === null ? vscode.l10n.t('no validation') : vscode.l10n.t('validation {0}', percent(validation)),
    saved === null ? vscode.l10n.t('unreadable') : formatStart(new Date(saved).toISOString()),
    ...(bytes === null ? [] : [formatBytes(bytes)]),
    ...(isNewest ? [vscode.l10n.t('newest')] : []),
  ];
  return { label: vscode.l10n.t('Step {0}', step), description: parts.join(' · ') };
}

/**
 * Returns the CLI options that continue the run from a checkpoint. If the run has later checkpoints, asks what should
 * become of them. Returns undefined if the user cancels.
 */
export async function continueOptions(run: Run, { name, step }: CheckpointEntry): Promise<string[] | undefined> {
  const { reader, summary } = run;
  const checkpoints = (await reader.checkpoints()).map(each => Number(each.slice('step-'.length)));
  const { events } = await reader.events();
  const work = discardedWork(step, { finished: summary.status.step, checkpoints, events });
  if (!work) return ['--from', name];
  const [fork, discard] = [vscode.l10n.t('Fork as new run'), vscode.l10n.t('Discard and resume')];
  const lost = formatDiscarded(work);
  const items = [
    { label: fork, detail: vscode.l10n.t('Starts a new run at step {0}. {1} keeps {2}.', step, summary.name, lost) },
    { label: discard, detail: vscode.l10n.t('Removes {0} of {1} for good.', lost, summary.name) },
  ];
  const title = vscode.l10n.t('Resume {0} from step {1}', summary.name, step);
  const placeHolder = vscode.l10n.t('After this checkpoint come {0}.', lost);
  const chosen = await showQuickPick(items, { title, placeHolder });
  if (!chosen) return undefined;
  return ['--from', name, chosen.label === fork ? '--fork' : '--discard'];
}
