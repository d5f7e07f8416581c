// `RAGEN: Compare Runs…`: compares the selected runs, or runs chosen from a list that also offers complete sweeps.
import * as vscode from 'vscode';
import { UserError } from '../../../common/user-error';
import type { Command } from '../../command';
import { plain } from '../../plain-text';
import { showQuickPick } from '../../questions';
import { inList } from '../run-picker';
import type { Run } from '../run-store';

type Item = vscode.QuickPickItem & { runs: Run[] };

export const compareRuns: Command = host => async (argument, all) => {
  const { runs } = host.store;
  if (runs.length < 2)
    throw new UserError(vscode.l10n.t('This workspace has fewer than two runs, so there is nothing to compare.'));
  const folders = all.map(each => (typeof each === 'string' ? each : each?.folder));
  const selected = runs.filter(({ folder }) => folders.includes(folder));
  const placeHolder = vscode.l10n.t('Select two or more runs. Runs that differ only in their seeds are grouped.');
  const named = typeof argument === 'string' ? argument : argument?.folder;
  const chosen =
    selected.length > 1 ? selected : await askForRuns(runs, named, vscode.l10n.t('Compare Runs'), placeHolder);
  if (!chosen) return;
  if (chosen.length < 2) throw new UserError(vscode.l10n.t('Select at least two runs to compare.'));
  host.comparisons.show(chosen);
};

/**
 * Lets the user choose runs or complete sweeps from a list, in which the run of the folder `named` is selected. Returns
 * undefined if the user cancels.
 */
export async function askForRuns(
  runs: Run[],
  named: string | undefined,
  title: string,
  placeHolder: string,
): Promise<Run[] | undefined> {
  const sweeps = new Map<string, Run[]>();
  for (const run of runs) {
    const id = run.reader.manifest?.sweep?.id;
    if (id !== undefined) sweeps.set(id, [...(sweeps.get(id) ?? []), run]);
  }
  const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator, runs: [] });
  const complete = [...sweeps].filter(([, members]) => members.length > 1);
  const items: Item[] = [
    ...(complete.length > 0 ? [heading(vscode.l10n.t('Sweeps'))] : []),
    ...complete.map(([id, members]) => ({
      label: plain(id),
      description: vscode.l10n.t('all {0} runs', members.length),
      runs: members,
    })),
    heading(vscode.l10n.t('Runs')),
    ...runs.map(run => ({
      ...inList(run),
      picked: run.folder === named,
      runs: [run],
    })),
  ];
  const chosen = await showQuickPick(items, {
    title,
    placeHolder,
    canPickMany: true,
    matchOnDetail: true,
  });
  return chosen && [...new Set(chosen.flatMap(item => item.runs))];
}
