// The extension's entry: what there is and how it hangs together. Everything else is under `host/`.
import * as vscode from 'vscode';
import { commands, guarded, type Host } from './host/commands';
import { dashboardKind } from './host/dashboard-panel';
import { episodesKind } from './host/episodes-panel';
import { noticeFailures } from './host/failure-notice';
import { PagePanels } from './host/page-panels';
import { Problems } from './host/problems';
import { RunPicker } from './host/run-picker';
import { RunStore } from './host/run-store';
import { RunsTree } from './host/runs-tree';
import { StatusBar } from './host/status-bar';

/** Runs outlive the window: on every activation those at work are found again, and nothing needs to be undone at its end. */
export function activate({ extensionPath, extensionUri, subscriptions }: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('RAGEN', { log: true });
  const store = new RunStore(log);
  const tree = new RunsTree(store);
  const problems = new Problems();

  const call = (command: string) => (folder: string) => void vscode.commands.executeCommand(command, folder);
  const actions = {
    pause: call('ragen.pause'),
    resume: call('ragen.resume'),
    stop: call('ragen.stop'),
    episodes: call('ragen.openEpisodes'),
    log: call('ragen.showLog'),
  };
  const dashboards = new PagePanels(dashboardKind(store, extensionPath, actions), extensionUri, store);
  const episodes = new PagePanels(episodesKind(store), extensionUri, store);
  const picker = new RunPicker(store, () => [dashboards.focused, episodes.focused, tree.selected]);

  const host: Host = { extensionPath, store, picker, dashboards, episodes, problems, log };
  for (const [id, command] of Object.entries(commands)) {
    subscriptions.push(vscode.commands.registerCommand(id, guarded(host, command)));
  }
  subscriptions.push(new StatusBar(store), noticeFailures(store), dashboards, episodes, problems, tree, store, log);
}
