// Entry point and composition root of the extension. All other host code is under `host/`.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { collapseKind } from './host/collapse-panel';
import { commands, guarded, trusted, type Host } from './host/commands';
import { ComparePanels } from './host/compare-panel';
import { serveSourceSnapshots } from './host/compare-environments';
import { addConfigurationCommands } from './host/configuration/configuration-commands';
import { addConfigurationHelp } from './host/configuration/configuration-help';
import { CoverageDecorations } from './host/coverage-decorations';
import { dashboardKind } from './host/dashboard-panel';
import { episodesKind } from './host/episodes-panel';
import { addEnvironmentTools } from './host/environment-commands';
import { Doctor } from './host/doctor';
import { EnvironmentDiagnostics } from './host/environment-diagnostics';
import { addInspection } from './host/inspection-commands';
import { NewRunPanel } from './host/new-run/new-run-panel';
import { noticeFailures } from './host/failure-notice';
import { PagePanels } from './host/page-panels';
import { Problems } from './host/problems';
import { runCommands } from './host/run-commands';
import { RunPicker } from './host/run-picker';
import { RunStore } from './host/run-store';
import { RunTrust } from './host/run-trust';
import { RunsTree } from './host/runs-tree';
import { StatusBar } from './host/status-bar';
import { SecretStore } from './host/secret-store';
import { keepSecret } from './host/secret-dialog';
import { CliLauncher } from './host/cli-launcher';
import { Walkthrough } from './host/walkthrough';
import { addTraces } from './host/traces/traces';

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
