// Services that the features of the extension share. They are created once in `activate` and disposed of after all
// features.
import * as vscode from 'vscode';
import { Problems } from './configuration/configuration-problems';
import { EngineStore } from './engines/engine-store';
import { createRunPages, type RunPages } from './pages/run-pages';
import type { CliInvocation } from './processes/cli-command';
import { CliLauncher } from './processes/cli-launcher';
import { Planner } from './processes/planner';
import { Inspections } from './processes/inspection-process';
import { RunPicker } from './runs/run-picker';
import { RunStore } from './runs/run-store';
import { RunTrust } from './runs/run-trust-dialog';
import { RunsTree } from './runs/view/runs-tree';
import { SecretStore } from './secrets/secret-store';
import { runSweepTask } from './sweeps/sweep-task';

export interface Host extends RunPages, vscode.Disposable {
  extensionPath: string;
  /** Returns the CLI for a folder, and the Node.js that executes it (see CliLauncher). */
  cliFor(cwd: string): Promise<CliInvocation>;
  secrets: SecretStore;
  /** The engine servers that the user has saved. */
  engines: EngineStore;
  /**
   * Requests the user's permission before the extension executes code from a run folder or code that a run's manifest
   * names.
   */
  trust: RunTrust;
  store: RunStore;
  picker: RunPicker;
  tree: RunsTree;
  problems: Problems;
  /** Inspection processes, which load the models of runs; the first request starts one. */
  inspections: Inspections;
  /** The planning process, which checks configurations and plans runs; `warm` or the first request starts it. */
  planner: Planner;
  log: vscode.LogOutputChannel;
}

/** Creates the services, including the Runs view and the panels. Each feature registers its own commands. */
export function createHost(context: vscode.ExtensionContext): Host {
  const { extensionPath } = context;
  const log = vscode.window.createOutputChannel('RAGEN', { log: true });
  const store = new RunStore(log);
  const tree = new RunsTree(store, context.workspaceState);
  const problems = new Problems();
  const secrets = new SecretStore(context.secrets, context.globalState, () => planner.restart());
  const engines = new EngineStore();
  const launcher = new CliLauncher(extensionPath, secrets);
  const cliFor = (cwd: string) => launcher.in(cwd);
  const planner = new Planner({ cliFor, log: line => log.info(`plan: ${line}`) });
  const nodePath = vscode.workspace.onDidChangeConfiguration(change => {
    if (change.affectsConfiguration('ragen.nodePath')) planner.restart();
  });
  const trust = new RunTrust();
  const inspections = new Inspections({
    cliFor,
    refusal: () =>
      vscode.workspace.isTrusted
        ? undefined
        : vscode.l10n.t('The workspace is not trusted, so its runs cannot be inspected: trust the workspace first.'),
    log: line => log.info(`inspection: ${line}`),
  });
  const pages = createRunPages(context, store, inspections, (workspace, { file, overrides, jobs }) =>
    runSweepTask({ cliFor, log }, { workspace, file, overrides, jobs }),
  );
  const picker = new RunPicker(store, () => [...pages.focused(), tree.selected[0]]);
  const services = {
    extensionPath,
    cliFor,
    secrets,
    engines,
    trust,
    store,
    picker,
    tree,
    problems,
    inspections,
    planner,
    log,
  };
  const parts = vscode.Disposable.from(
    inspections,
    planner,
    nodePath,
    engines,
    trust,
    pages,
    problems,
    tree,
    store,
    log,
  );
  return { ...pages, ...services, dispose: () => void parts.dispose() };
}
