// Which run a command is about: the one it was called on, else the one in focus (its page, then the tree's selection), else the
// only one that fits, else the reader is asked.
import * as vscode from 'vscode';
import type { RunSummary } from '../protocol/pages';
import { UserError } from '../protocol/user-error';
import { plain } from './plain-text';
import type { Run, RunStore } from './run-store';
import { startWords, withoutArchived } from './run-words';
import { progressWords, stateWord, type RunNode } from './runs-tree';

/** What a command is called with: a node of the tree, the folder of a page's run, or nothing from the palette. */
export type RunArgument = RunNode | string | undefined;

export class RunPicker {
  /** `focused` answers with the folders in focus, the nearest first. */
  constructor(
    private readonly store: RunStore,
    private readonly focused: () => (string | undefined)[],
  ) {}

  /**
   * The run to act on; undefined where the reader chose none. `fits` says which runs the command can act on and `none` what to
   * say where no run does. Throws a UserError with `none`.
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
   * The runs to act on: those a command was called on that fit, else the one that `pick` finds; none where the reader chose none. Throws
   * a UserError with `none` where the command was called on runs of which none fits.
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
    const found = await Promise.all(folders.map(folder => this.store.get(folder) ?? this.store.find(folder)));
    const runs = found.filter(run => run !== undefined).filter(run => fits(run.summary));
    if (runs.length === 0) throw new UserError(none);
    return runs;
  }

  private async ask(runs: Run[]): Promise<Run | undefined> {
    const items = runs.map(run => ({ ...inList(run), run }));
    const options = { placeHolder: vscode.l10n.t('Which run?'), matchOnDescription: true, matchOnDetail: true };
    const chosen = await vscode.window.showQuickPick(items, options);
    return chosen?.run;
  }
}

function folderOf(argument: RunArgument): string[] {
  const folder = typeof argument === 'string' ? argument : argument?.folder;
  return folder === undefined ? [] : [folder];
}

/** A run as a list shows it, told apart from others of its name by when it began. */
export function inList({ summary }: Run): vscode.QuickPickItem {
  const began = vscode.l10n.t('began {0}', startWords(summary.created));
  const description = [stateWord(summary), progressWords(summary), began].join(' · ');
  return { label: plain(summary.name), description: plain(description), detail: summary.id };
}
