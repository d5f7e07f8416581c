// Selects the run for a command. In order of precedence, the run is: the command's argument; the run of the focused
// page; the run selected in the tree; the only suitable run; the run that the user chooses from a list.
import * as vscode from 'vscode';
import type { RunSummary } from '../../protocol/page-state';
import { UserError } from '../../common/user-error';
import { plain } from '../plain-text';
import { showQuickPick } from '../questions';
import type { Run, RunStore } from './run-store';
import { formatStart, withoutArchived } from './run-format';
import { formatProgress, formatState } from './state-label';
import type { RunNode } from './view/runs-tree';

/** Argument of a command: a tree node, the run folder of a page, or undefined from the command palette. */
export type RunArgument = RunNode | string | undefined;

export class RunPicker {
  /**
   * `focused` returns run folders, the most relevant first. They belong to the runs that the focused pages show, and to
   * the run selected in the tree.
   */
  constructor(
    private readonly store: RunStore,
    private readonly focused: () => (string | undefined)[],
  ) {}

  /**
   * Returns the run to act on, or undefined if the user cancels. `fits` returns true for the runs that the command
   * supports. Throws a UserError with the message `none` if no run fits.
   */
  async pick(argument: RunArgument, fits: (run: RunSummary) => boolean, none: string): Promise<Run | undefined> {
    const [named] = folderOf(argument);
    if (named !== undefined) return this.store.get(named) ?? this.store.find(named);
    await this.store.scanned;
    const fitting = this.store.runs.filter(run => fits(run.summary));
    if (fitting.length === 0) throw new UserError(none);
    for (const folder of this.focused()) {
      const run = fitting.find(candidate => candidate.folder === folder);
      if (run) return run;
    }
    const offered = withoutArchived(fitting);
    return offered.length === 1 ? offered[0] : this.ask(offered);
  }

  /**
   * Returns the runs to act on: the runs in the command's arguments for which `fits` returns true. Without arguments,
   * returns the result of `pick` as a list. Returns an empty list if the user cancels. Throws a UserError with the
   * message `none` if none of the runs fits.
   */
  async pickMany(
    argument: RunArgument,
    all: RunArgument[],
    fits: (run: RunSummary) => boolean,
    none: string,
  ): Promise<Run[]> {
    const folders = (all.length > 0 ? all : [argument]).flatMap(folderOf);
    if (folders.length === 0) {
      const run = await this.pick(argument, fits, none);
      return run ? [run] : [];
    }
    const found = await Promise.all(folders.map(async folder => this.store.get(folder) ?? this.store.find(folder)));
    const runs = found.filter(run => run !== undefined).filter(run => fits(run.summary));
    if (runs.length === 0) throw new UserError(none);
    return runs;
  }

  /** Returns the runs in a command's arguments, each with its state read again; empty without arguments. */
  async named(argument: RunArgument, all: RunArgument[]): Promise<Run[]> {
    const folders = (all.length > 0 ? all : [argument]).flatMap(folderOf);
    const found = await Promise.all(folders.map(folder => this.store.find(folder)));
    return found.filter(run => run !== undefined);
  }

  /** Returns the folder of the run of the focused page or of the selected run; undefined without one. */
  current(): string | undefined {
    return this.focused().find(folder => folder !== undefined);
  }

  private async ask(runs: Run[]): Promise<Run | undefined> {
    const items = runs.map(run => ({ ...inList(run), run }));
    const options = { placeHolder: vscode.l10n.t('Which run?'), matchOnDescription: true, matchOnDetail: true };
    const chosen = await showQuickPick(items, options);
    return chosen?.run;
  }
}

function folderOf(argument: RunArgument): string[] {
  const folder = typeof argument === 'string' ? argument : argument?.folder;
  return folder === undefined ? [] : [folder];
}

/** Formats a run as a list item, with its start time to distinguish runs of the same name. */
export function inList({ summary }: Run): vscode.QuickPickItem {
  const began = vscode.l10n.t('started {0}', formatStart(summary.created));
  const description = [formatState(summary), formatProgress(summary), began].join(' · ');
  return { label: plain(summary.name), description: plain(description), detail: summary.id };
}
