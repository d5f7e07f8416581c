// Entry point of the extension: creates the shared services and registers the features. Each feature has its own folder
// in vscode/.
import type * as vscode from 'vscode';
import { registerConfigurations } from './vscode/configuration/configurations';
import { registerDoctor } from './vscode/doctor/doctor-command';
import { registerEngines } from './vscode/engines/engine-commands';
import { registerEnvironmentTools } from './vscode/environments/environment-commands';
import { registerRunEnvironments } from './vscode/environments/run-environment-commands';
import { createHost } from './vscode/host-services';
import { registerNewRun } from './vscode/new-run/new-run-panel';
import { registerLive } from './vscode/pages/live-panel';
import { registerLeaderboard } from './vscode/pages/leaderboard-panel';
import { registerQuery } from './vscode/pages/query-panel';
import { registerAttach } from './vscode/runs/commands/attach-run';
import { registerDiagnose } from './vscode/runs/commands/diagnose-run';
import { registerRunCommands } from './vscode/runs/commands/run-commands';
import { registerRunsView } from './vscode/runs/view/runs-view';
import { registerSecrets } from './vscode/secrets/secret-dialog';
import { registerSweeps } from './vscode/sweeps/sweep-command';
import { registerTraces } from './vscode/traces/register-traces';
import { registerWhatIf } from './vscode/traces/what-if/what-if-command';
import { registerWalkthrough } from './vscode/walkthrough';

/**
 * Activates the extension. Deactivation needs no cleanup: runs outlive the window, and the next activation finds the
 * active runs again.
 */
export function activate(context: vscode.ExtensionContext): void {
  const host = createHost(context);
  registerRunCommands(context, host);
  registerAttach(context, host);
  registerDiagnose(context, host);
  registerSecrets(context, host);
  registerEngines(context, host);
  registerNewRun(context, host);
  registerDoctor(context, host);
  registerWalkthrough(context, host);
  registerConfigurations(context, host);
  registerEnvironmentTools(context, host);
  registerRunEnvironments(context, host);
  registerWhatIf(context, host);
  registerLive(context, host);
  registerLeaderboard(context, host);
  registerQuery(context, host);
  registerSweeps(context, host);
  registerTraces(context, host);
  registerRunsView(context, host);
  context.subscriptions.push(host);
}
