// Entry point and composition root of the extension. All other host code is under `host/`.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { collapseKind } from './vscode/pages/collapse-panel';
import { commands, guarded, trusted, type Host } from './vscode/runs/commands/commands';
import { ComparePanels } from './vscode/pages/compare-panel';
import { serveSourceSnapshots } from './vscode/environments/compare-environments';
import { addConfigurationCommands } from './vscode/configuration/configuration-commands';
import { addConfigurationHelp } from './vscode/configuration/configuration-help';
import { CoverageDecorations } from './vscode/environments/coverage-decorations';
import { dashboardKind } from './vscode/pages/dashboard-panel';
import { episodesKind } from './vscode/pages/episodes-panel';
import { addEnvironmentTools } from './vscode/environments/environment-commands';
import { Doctor } from './vscode/doctor/doctor-command';
import { EnvironmentDiagnostics } from './vscode/environments/environment-diagnostics';
import { addInspection } from './vscode/traces/what-if/inspection-commands';
import { NewRunPanel } from './vscode/new-run/new-run-panel';
import { noticeFailures } from './vscode/runs/view/failure-notice';
import { PagePanels } from './vscode/pages/page-panels';
import { Problems } from './vscode/configuration/configuration-problems';
import { runCommands } from './vscode/runs/commands/run-commands';
import { RunPicker } from './vscode/runs/run-picker';
import { RunStore } from './vscode/runs/run-store';
import { RunTrust } from './vscode/runs/run-trust-dialog';
import { RunsTree } from './vscode/runs/view/runs-tree';
import { StatusBar } from './vscode/runs/view/status-bar';
import { SecretStore } from './vscode/processes/secret-store';
import { keepSecret } from './vscode/processes/secret-dialog';
import { CliLauncher } from './vscode/processes/cli-launcher';
import { Walkthrough } from './vscode/walkthrough';
import { addTraces } from './vscode/traces/traces';

/** Runs outlive the window: each activation finds the active ones again, and deactivation needs no cleanup. */
export function activate(context: vscode.ExtensionContext): void {
  const { extensionPath, extensionUri, subscriptions } = context;
  const log = vscode.window.createOutputChannel('RAGEN', { log: true });
  const store = new RunStore(log);
  const tree = new RunsTree(store, context.workspaceState);
  const problems = new Problems();
  const coverage = new CoverageDecorations(store);
  const secrets = new SecretStore(context.secrets, context.globalState);
  const cliLauncher = new CliLauncher(extensionPath, secrets);
  const terminal = (cwd: string) => cliLauncher.in(cwd);
  const trust = new RunTrust();

  const call = (command: string) => (folder: string) => void vscode.commands.executeCommand(command, folder);
  const actions = {
    pause: call('ragen.pause'),
    resume: call('ragen.resume'),
    stop: call('ragen.stop'),
    settings: call('ragen.changeSettings'),
    episodes: call('ragen.openEpisodes'),
    collapse: call('ragen.openCollapse'),
    log: call('ragen.showLog'),
  };
  const columns = context.storageUri ? join(context.storageUri.fsPath, 'columns') : null;
  const dashboards = new PagePanels(
    dashboardKind(store, extensionPath, actions, {
      columns,
      memory: context.workspaceState,
    }),
    extensionUri,
    store,
  );
  const episodes = new PagePanels(
    episodesKind(store, {
      extensionPath,
      storage: context.storageUri ? join(context.storageUri.fsPath, 'episodes') : null,
    }),
    extensionUri,
    store,
  );
  const collapses = new PagePanels(collapseKind(store, extensionUri), extensionUri, store);
  const comparisons = new ComparePanels(store, extensionUri, columns, {
    dashboard: call('ragen.openDashboard'),
    difference: folders => void vscode.commands.executeCommand('ragen.compareConfigurations', folders[0], folders),
  });
  const picker = new RunPicker(store, () => [
    dashboards.focused,
    episodes.focused,
    collapses.focused,
    tree.selected[0],
  ]);

  const closePages = (folder: string) => [dashboards, episodes, collapses].forEach(pages => pages.close(folder));
  subscriptions.push(store.onDidDelete(closePages)); // also when deleted by another window or a terminal
  const host: Host = {
    extensionPath,
    terminal,
    secrets,
    trust,
    store,
    picker,
    tree,
    closePages,
    dashboards,
    episodes,
    collapses,
    comparisons,
    problems,
    coverage,
    log,
  };
  for (const [id, command] of Object.entries({ ...commands, ...runCommands, 'ragen.keepSecret': keepSecret })) {
    subscriptions.push(vscode.commands.registerCommand(id, guarded(host, command)));
  }
  const newRun = new NewRunPanel(host, extensionUri);
  const openForm = guarded(host, () => async () => {
    if (trusted()) newRun.show();
  });
  const doctor = new Doctor((context.extension.packageJSON as { version: string }).version);
  subscriptions.push(doctor, vscode.commands.registerCommand('ragen.doctor', guarded(host, doctor.command)));
  subscriptions.push(newRun, vscode.commands.registerCommand('ragen.newRun', openForm));
  subscriptions.push(new Walkthrough(store, context.globalState));
  subscriptions.push(addConfigurationCommands(host), addConfigurationHelp(extensionPath, problems));
  subscriptions.push(addEnvironmentTools(extensionUri, log, terminal));
  const inspection = addInspection(extensionUri, { store, picker, trust, log, terminal });
  const scorer = inspection.inspections;
  subscriptions.push(inspection, addTraces(context, { store, picker, trust, log, terminal, scorer }));
  subscriptions.push(
    new EnvironmentDiagnostics(store),
    serveSourceSnapshots(),
    trust,
    coverage,
    collapses,
    comparisons,
  );
  subscriptions.push(
    new StatusBar(store),
    noticeFailures(store, context.workspaceState),
    dashboards,
    episodes,
    problems,
    tree,
    store,
    log,
  );
}
