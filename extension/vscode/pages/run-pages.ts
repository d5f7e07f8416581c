// The pages of runs: dashboard, Episodes, Collapse, Timeline, Log, the comparison of several runs, sweeps, and the run
// table.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { collapseKind } from './collapse-panel';
import { ComparePanels } from './compare-panel';
import { dashboardKind, type DashboardActions } from './dashboard-panel';
import { EpisodeTargets } from './episode-targets';
import { episodesKind } from './episodes-panel';
import { logKind } from './log-panel';
import { PagePanels } from './page-panels';
import { RunTablePanel } from './run-table-panel';
import type { Inspections } from '../processes/inspection-process';
import type { RunStore } from '../runs/run-store';
import { SweepPanels, type SweepActions } from './sweep-panel';
import { timelineKind } from './timeline-panel';

export interface RunPages extends vscode.Disposable {
  dashboards: PagePanels;
  episodes: PagePanels;
  /** Episodes at which Episodes pages are to open. */
  episodeTargets: EpisodeTargets;
  collapses: PagePanels;
  timelines: PagePanels;
  logs: PagePanels;
  comparisons: ComparePanels;
  runTable: RunTablePanel;
  sweeps: SweepPanels;
  /** Closes all pages of a run. */
  closePages(folder: string): void;
  /** Run folders of the pages in focus. */
  focused(): (string | undefined)[];
}

/** Creates the panels. The pages of a deleted run are closed. `resumeSweep` continues a sweep in a terminal. */
export function createRunPages(
  context: vscode.ExtensionContext,
  store: RunStore,
  inspections: Pick<Inspections, 'heatMaps'>,
  resumeSweep: SweepActions['resume'],
): RunPages {
  const { extensionPath, extensionUri } = context;
  const call = (command: string) => (folder: string) => void vscode.commands.executeCommand(command, folder);
  const episodeTargets = new EpisodeTargets();
  const actions: DashboardActions = {
    pause: call('ragen.pause'),
    resume: call('ragen.resume'),
    stop: call('ragen.stop'),
    settings: call('ragen.changeSettings'),
    episodes: call('ragen.openEpisodes'),
    collapse: call('ragen.openCollapse'),
    timeline: call('ragen.showTimeline'),
    log: call('ragen.openLog'),
    compare: call('ragen.compareRuns'),
    evaluate: call('ragen.evaluateRun'),
    fork: call('ragen.forkRun'),
    export: call('ragen.exportRun'),
    episode(folder, id) {
      episodeTargets.set(folder, { id, turn: null });
      void vscode.commands.executeCommand('ragen.openEpisodes', folder);
    },
  };
  const storage = (name: string): string | null => (context.storageUri ? join(context.storageUri.fsPath, name) : null);
  const columns = storage('columns');
  const dashboards = new PagePanels(
    dashboardKind(store, extensionPath, actions, {
      columns,
      episodes: storage('episodes'),
      memory: context.workspaceState,
    }),
    extensionUri,
    store,
  );
  const episodes = new PagePanels(
    episodesKind(store, {
      extensionPath,
      storage: storage('episodes'),
      inspections,
      targets: episodeTargets,
    }),
    extensionUri,
    store,
  );
  const collapses = new PagePanels(collapseKind(store, extensionUri), extensionUri, store);
  const timelines = new PagePanels(timelineKind(store), extensionUri, store);
  const logs = new PagePanels(logKind(store), extensionUri, store);
  const comparisons = new ComparePanels(store, extensionUri, columns, {
    dashboard: call('ragen.openDashboard'),
    difference: folders => void vscode.commands.executeCommand('ragen.compareConfigurations', folders[0], folders),
  });
  const runTable = new RunTablePanel(store, extensionUri, context.workspaceState, columns);
  const sweeps = new SweepPanels(store, extensionUri, columns, {
    dashboard: call('ragen.openDashboard'),
    compare: folders => void vscode.commands.executeCommand('ragen.compareRuns', folders[0], folders),
    resume: resumeSweep,
  });
  const perRun = [dashboards, episodes, collapses, timelines, logs];
  const closePages = (folder: string) => perRun.forEach(pages => pages.close(folder));
  const deleted = store.onDidDelete(closePages); // fires for deletions by other windows and terminals as well
  const parts = vscode.Disposable.from(deleted, episodeTargets, comparisons, runTable, sweeps, ...perRun);
  return {
    dashboards,
    episodes,
    episodeTargets,
    collapses,
    timelines,
    logs,
    comparisons,
    runTable,
    sweeps,
    closePages,
    focused: () => perRun.map(({ focused }) => focused),
    dispose: () => void parts.dispose(),
  };
}
