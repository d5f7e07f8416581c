// Converts the settings `ragen.ray.*`, which name a Ray cluster, to options of the CLI. The job record in a run folder
// is untrusted, so the address in the record is used only if the settings name this address or the user confirms it.
import * as vscode from 'vscode';
import type { RunSummary } from '../../../protocol/page-state';
import { chooseAction, confirmAction } from '../../notifications';

/** Address of the cluster in the settings; empty if runs are started on this machine. */
const address = (): string =>
  vscode.workspace.getConfiguration('ragen').get('ray.address', '').trim().replace(/\/+$/, '');

/**
 * Returns the CLI options that start a run on the cluster that the settings name; no options if the settings name none.
 */
export const clusterOptions = (): string[] => optionsFor(address());

const optionsFor = (url: string): string[] => {
  const cli = vscode.workspace.getConfiguration('ragen').get('ray.remoteCli', '').trim();
  return url === '' ? [] : ['--on', url, ...(cli === '' ? [] : ['--remote-cli', cli])];
};

/** Whether the settings name the cluster of a run's job. */
export const isNamed = ({ job }: Pick<RunSummary, 'job'>): boolean => job !== undefined && job.address === address();

/**
 * Returns the CLI options that resume a run: on this machine or, if the run was a job, on the cluster that the settings
 * name. If the settings name no cluster, the user chooses between the job's cluster and this machine. Returns undefined
 * if the user cancels.
 */
export async function resumeOptions({ name, job }: RunSummary): Promise<string[] | undefined> {
  if (!job) return [];
  if (address() !== '') return clusterOptions();
  const [there, here] = [vscode.l10n.t('On the Cluster'), vscode.l10n.t('On This Machine')];
  const detail = vscode.l10n.t(
    'Its folder names the Ray cluster {0}. Choose this cluster only if you trust the address.',
    job.address,
  );
  const choice = await chooseAction(vscode.l10n.t('Where should {0} resume?', name), detail, [there, here]);
  if (choice === here) return ['--on', 'local'];
  return choice === there ? optionsFor(job.address) : undefined;
}

/**
 * Returns the CLI options that name the cluster of a queued job; undefined if the user does not confirm the cluster's
 * address.
 */
export async function jobOptions(run: RunSummary & Required<Pick<RunSummary, 'job'>>): Promise<string[] | undefined> {
  const options = ['--on', run.job.address];
  if (isNamed(run)) return options;
  const question = vscode.l10n.t('Cancel the queued job of {0}?', run.name);
  const detail = vscode.l10n.t(
    'The folder of the run names the Ray cluster {0}. Continue only if you trust the address.',
    run.job.address,
  );
  const cancel = vscode.l10n.t('Cancel the Job');
  return (await confirmAction(question, detail, cancel)) === cancel ? options : undefined;
}
