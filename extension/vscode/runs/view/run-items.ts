// Items of the Runs view: groups, runs with their tooltips, and folders whose run cannot be read. The texts of a run's
// state and progress are in ../state-label.ts.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { RunSummary } from '../../../protocol/page-state';
import { progressOf } from '../../../run-data/run-progress';
import { plain, unlinked } from '../../plain-text';
import {
  briefly,
  contextOf,
  duration,
  formatParent,
  formatStart,
  isActive,
  percent,
  runPhase,
  short,
  waitsBecause,
  type RunPhase,
} from '../run-format';
import type { Run } from '../run-store';
import { formatPlace, formatProgress, formatState } from '../state-label';

/**
 * Groups of the view. Interrupted runs are in the group `failed`. Archived runs are in the group `archived`, unless
 * they are active.
 */
export type Group = Exclude<RunPhase, 'interrupted'> | 'archived';
/** All groups, in the order of the view. */
export const groups: Group[] = ['running', 'paused', 'failed', 'finished', 'stopped', 'archived'];
/** Returns the group in which the view lists a run. */
export const groupOf = (run: RunSummary): Group => {
  const phase = runPhase(run);
  if (run.archived && !isActive(run)) return 'archived';
  return phase === 'interrupted' ? 'failed' : phase;
};

/** Returns the tree item of a group. */
export function groupItem(group: Group, count: number): vscode.TreeItem {
  const labels: Record<Group, string> = {
    running: vscode.l10n.t('Running'),
    paused: vscode.l10n.t('Paused'),
    failed: vscode.l10n.t('Failed or interrupted'),
    finished: vscode.l10n.t('Finished'),
    stopped: vscode.l10n.t('Stopped'),
    archived: vscode.l10n.t('Archived'),
  };
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(labels[group], group === 'archived' ? Collapsed : Expanded);
  item.id = `group:${group}`;
  item.description = String(count);
  item.contextValue = 'group';
  return item;
}

/** Returns the tree item of a run folder with an unusable manifest; `reason` explains the problem. */
export function damagedItem(folder: string, reason: string): vscode.TreeItem {
  const item = new vscode.TreeItem(plain(basename(folder)), vscode.TreeItemCollapsibleState.None);
  item.id = `damaged:${folder}`;
  item.description = vscode.l10n.t('unreadable: {0}', plain(briefly(reason)));
  item.iconPath = iconOf('interrupted');
  item.tooltip = new vscode.MarkdownString().appendText(unlinked(reason));
  item.contextValue = 'damaged';
  return item;
}

/**
 * Returns the tree item of a run. `isShared`: whether another visible run has the same name. `nameOf` returns the name
 * of a run by its id.
 */
export function runItem(
  { folder, summary }: Run,
  isShared: boolean,
  nameOf: (id: string) => string | undefined,
): vscode.TreeItem {
  const item = new vscode.TreeItem(summary.name, vscode.TreeItemCollapsibleState.None);
  const phase = runPhase(summary);
  item.id = folder;
  // Tags come first, because a narrow side bar truncates the end.
  const tags = (summary.tags ?? []).map(tag => `#${tag}`).join(' ');
  const began = isShared ? [formatStart(summary.created)] : [];
  const place = isActive(summary) ? formatPlace(summary) : undefined;
  const where = place === undefined ? [] : [plain(place)];
  const parent = formatParent(summary, nameOf);
  const lineage = parent === undefined ? [] : [plain(vscode.l10n.t('fork of {0}', parent))];
  const trainer = summary.trainer ? [plain(summary.trainer.name)] : [];
  const rest = [
    ...trainer,
    ...(tags === '' ? [] : [tags]),
    formatProgress(summary),
    ...where,
    ...lineage,
    ...began,
  ].join(' · ');
  const silent = summary.silent_s !== undefined && isActive(summary);
  const waits = waitsBecause(summary) !== undefined || silent;
  const { problem } = summary;
  const unread = problem === undefined ? undefined : vscode.l10n.t('unreadable: {0}', plain(briefly(problem)));
  item.description = unread ?? (waits ? `${plain(formatState(summary))} · ${rest}` : rest);
  item.iconPath = iconOf(waits || unread !== undefined ? 'interrupted' : phase);
  item.tooltip = tooltipOf(summary, parent);
  item.contextValue = contextOf(summary);
  item.accessibilityInformation = { label: `${summary.name}, ${formatState(summary)}, ${rest}` };
  item.command = {
    command: 'ragen.openDashboard',
    title: vscode.l10n.t('Open Dashboard'),
    arguments: [{ group: groupOf(summary), folder }],
  };
  return item;
}

/**
 * Returns the icon of a phase. Each phase has its own shape in addition to its colour, because not all users can
 * distinguish the colours. If the trainer, not the user, has paused a run, the run has the icon of an interrupted run.
 */
function iconOf(phase: RunPhase): vscode.ThemeIcon {
  const icons: Record<RunPhase, [string, string]> = {
    running: ['pulse', 'charts.blue'],
    paused: ['debug-pause', 'charts.yellow'],
    finished: ['pass', 'testing.iconPassed'],
    stopped: ['stop-circle', 'descriptionForeground'],
    failed: ['error', 'testing.iconFailed'],
    interrupted: ['warning', 'list.warningForeground'],
  };
  const [icon, colour] = icons[phase];
  return new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
}

function tooltipOf(run: RunSummary, parent: string | undefined): vscode.MarkdownString {
  const { status } = run;
  const { unit, done, of } = progressOf(status);
  const rows: [string, string | undefined][] = [
    [vscode.l10n.t('State'), formatState(run)],
    [unit === 'step' ? vscode.l10n.t('Step') : vscode.l10n.t('Episode'), of > 0 ? `${done} / ${of}` : String(done)],
    [
      status.success_of === 'val' ? vscode.l10n.t('Validation success') : vscode.l10n.t('Success'),
      status.success === null ? undefined : percent(status.success),
    ],
    [vscode.l10n.t('Return'), status.reward === null ? undefined : short(status.reward)],
    [vscode.l10n.t('Tokens/s'), status.tokens_per_s === null || !run.live ? undefined : short(status.tokens_per_s)],
    [vscode.l10n.t('ETA'), status.eta_s === null || !run.live ? undefined : duration(status.eta_s)],
    [vscode.l10n.t('Trainer'), run.trainer && [run.trainer.name, run.trainer.version].filter(Boolean).join(' ')],
    [vscode.l10n.t('Source'), run.trainer?.source],
    [vscode.l10n.t('Configuration'), run.trainer ? undefined : run.config_name],
    [vscode.l10n.t('Forked from'), parent],
    [vscode.l10n.t('Tags'), run.tags?.join(', ')],
    [vscode.l10n.t('Notes'), run.notes],
    [vscode.l10n.t('Ray job'), run.job && `${formatPlace(run)} · ${run.job.id} · ${run.job.address}`],
    [vscode.l10n.t('Started'), new Date(run.created).toLocaleString()],
    [vscode.l10n.t('Folder'), run.id],
  ];
  const text = new vscode.MarkdownString();
  text.appendMarkdown('**').appendText(unlinked(run.name)).appendMarkdown('**\n\n');
  if (run.problem !== undefined) text.appendText(unlinked(run.problem)).appendMarkdown('\n\n');
  if (status.error !== undefined) text.appendText(unlinked(status.error)).appendMarkdown('\n\n');
  text.appendMarkdown('| | |\n|---|---|\n');
  for (const [name, value] of rows) {
    if (value !== undefined) text.appendMarkdown(`| ${name} | `).appendText(unlinked(value)).appendMarkdown(' |\n');
  }
  return text;
}
