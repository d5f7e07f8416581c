// Which run a command is about: the one it was called on, else the one in focus (its page, then the tree's selection), else the
// only one that fits, else the reader is asked.
import * as vscode from 'vscode';
import type { RunSummary } from '../protocol/pages';
import { progressOf } from '../protocol/run-progress';
import { UserError } from '../protocol/user-error';
import { plain } from './plain-text';
import type { Run, RunStore } from './run-store';
import { percent } from './run-words';
import { stateWord, type RunNode } from './runs-tree';

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
    const fitting = this.store.runs.filter(run => fits(run.summary));
    if (fitting.length === 0) throw new UserError(none);
    for (const folder of this.focused()) {
      const run = fitting.find(candidate => candidate.folder === folder);
      if (run) return run;
    }
    return fitting.length === 1 ? fitting[0] : this.ask(fitting);
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
    const items = runs.map(run => ({
      label: plain(run.summary.name),
      description: plain(describe(run.summary)),
      detail: run.summary.id,
      run,
    }));
    const chosen = await vscode.window.showQuickPick(items, {
      placeHolder: vscode.l10n.t('Which run?'),
      matchOnDetail: true,
    });
    return chosen?.run;
  }
}

function folderOf(argument: RunArgument): string[] {
  const folder = typeof argument === 'string' ? argument : argument?.folder;
  return folder === undefined ? [] : [folder];
}

function describe(run: RunSummary): string {
  const { status } = run;
  const { done, of } = progressOf(status);
  const success = status.success === null ? [] : [percent(status.success)];
  return [stateWord(run), `${done}/${of}`, ...success].join(' · ');
}
