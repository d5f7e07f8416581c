// All commands on runs, by their ids in package.json. The commands on a run's environments are in
// environments/run-environment-commands.ts.
import type * as vscode from 'vscode';
import { registerCommands, type Command } from '../../command';
import type { Host } from '../../host-services';
import { watchJobs } from '../job-watch';
import { changeSettings } from './change-settings';
import { configurationCommands } from './compare-configurations';
import { compareRuns } from './compare-runs';
import { controlCommands } from './control-commands';
import { deleteRuns } from './delete-runs';
import { exportDataSet } from './export-data-set';
import { exportReport } from './export-report';
import { exportRuns } from './export-runs';
import { labelCommands } from './label-commands';
import { listCommands } from './list-commands';
import { searchCommand } from './search-episodes';
import { startCommands } from './start-commands';
import { viewCommands } from './view-commands';

export function registerRunCommands(context: vscode.ExtensionContext, host: Host): void {
  const commands: Record<string, Command> = {
    ...startCommands,
    ...controlCommands,
    ...viewCommands,
    ...listCommands,
    ...labelCommands,
    ...configurationCommands,
    'ragen.changeSettings': changeSettings,
    'ragen.compareRuns': compareRuns,
    'ragen.searchEpisodes': searchCommand,
    'ragen.exportRun': exportRuns,
    'ragen.exportReport': exportReport,
    'ragen.exportDataSet': exportDataSet,
    'ragen.deleteRuns': deleteRuns,
  };
  context.subscriptions.push(registerCommands(host, commands), watchJobs(host));
}
