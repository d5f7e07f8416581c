// Watches runs whose Ray job is queued. No trainer writes the status of such a run, so this file calls the CLI at
// intervals. The CLI reads the state of the jobs from the cluster. If a job ended before its trainer started, the CLI
// records in the run folder that the run has ended. The CLI reads only the jobs of the cluster that the settings name.
import * as vscode from 'vscode';
import { isQueuedStatus } from '../../run-data/job-record';
import { messageOf } from '../command';
import type { Host } from '../host-services';
import { askCli } from '../processes/cli-command';
import { workspaceOf } from './run-store';
import { clusterOptions, isNamed } from './start/cluster';

/** Milliseconds between two calls of the CLI. */
const intervalMs = 15_000;

/** Starts the watch; disposing of the result stops it. */
export function watchJobs({ store, log, cliFor }: Pick<Host, 'store' | 'log' | 'cliFor'>): vscode.Disposable {
  let asking = false;
  const ask = async (): Promise<void> => {
    if (asking || !vscode.workspace.isTrusted) return;
    const queued = store.runs.filter(({ summary }) => isQueuedStatus(summary.status) && isNamed(summary));
    const [, address] = clusterOptions();
    if (address === undefined) return;
    asking = true;
    try {
      for (const cwd of new Set(queued.map(workspaceOf))) {
        const { node, cli } = await cliFor(cwd);
        await askCli(node, cli, ['jobs', '--on', address], cwd, vscode.l10n.t('the list of jobs'));
      }
    } catch (error) {
      log.warn(`jobs: ${messageOf(error)}`);
    } finally {
      asking = false;
    }
  };
  const timer = setInterval(() => void ask(), intervalMs);
  return { dispose: () => clearInterval(timer) };
}
