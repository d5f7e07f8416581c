// Starts a run with the CLI, shows the problems of the run's configuration, waits until the store contains the run, and
// opens its dashboard.
import * as vscode from 'vscode';
import { gibibytes } from '../../../common/numbers';
import { UserError } from '../../../common/user-error';
import { MemoryShortage, type PlannedMemory } from '../../../run-data/memory-shortage';
import { messageOf } from '../../command';
import type { Host } from '../../host-services';
import { chooseAction, withProgress } from '../../notifications';
import { ConfigError, startRun, type StartedRun } from '../../processes/cli-command';
import { pageColumn } from '../../pages/page-column';

/**
 * Starts a run and opens its dashboard. `args` are CLI arguments, `cwd` is the workspace folder, `name` is used in
 * messages.
 */
export async function begin(host: Host, args: string[], cwd: string, name: string): Promise<void> {
  const { store, log, problems } = host;
  const progress = { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Starting {0}', name) };
  let started: StartedRun;
  try {
    started = await withProgress(progress, async () => {
      const { node, cli } = await host.cliFor(cwd);
      log.info(
        `${node.path} (Node ${node.version}${node.electron ? ', the editor’s runtime' : ''}) ${cli} ${args.join(' ')} in ${cwd}`,
      );
      return startRun(node, cli, args, cwd);
    });
  } catch (error) {
    if (error instanceof MemoryShortage) {
      if (await startsAnyway(error.memory, args, name)) await begin(host, [...args, '--yes'], cwd, name);
      return;
    }
    const shown = error instanceof ConfigError ? problems.show(error.problems, cwd) : 0;
    if (shown > 0) await vscode.commands.executeCommand('workbench.actions.view.problems');
    if (shown > 1)
      throw new UserError(vscode.l10n.t('{0} ({1} more in the Problems view)', messageOf(error), shown - 1));
    throw error;
  }
  problems.clear();
  const run = await store.find(started.folder);
  if (!run)
    throw new UserError(
      `run ${started.run} was started in ${started.folder}, which is not in this workspace: open a folder that contains the run`,
    );
  host.dashboards.show(run, pageColumn(), true);
}

/**
 * Asks whether a run that does not fit into memory is to be started. If the user wants to change the configuration, opens
 * its file or the New Run page.
 */
async function startsAnyway(
  { planned, available, phase }: PlannedMemory,
  args: string[],
  name: string,
): Promise<boolean> {
  const [start, change] = [vscode.l10n.t('Start Anyway'), vscode.l10n.t('Change Configuration')];
  const choice = await chooseAction(
    vscode.l10n.t('Start {0}, although it may run out of memory?', name),
    vscode.l10n.t(
      'The run may need {0} in its {1}, but {2} is available. If the memory is used up, the system ends the run or other programs.',
      gibibytes(planned),
      phase,
      gibibytes(available),
    ),
    [start, change],
  );
  if (choice === change) {
    const file = args.includes('--config') ? args[args.indexOf('--config') + 1] : undefined;
    if (file === undefined) await vscode.commands.executeCommand('ragen.newRun');
    else await vscode.window.showTextDocument(vscode.Uri.file(file));
  }
  return choice === start;
}
