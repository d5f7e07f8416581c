// Dialog in which the user edits the tags of runs. It lists the workspace's tags with check boxes, and the user can
// type new tags.
import * as vscode from 'vscode';
import { plain } from '../../plain-text';
import { createQuickPick } from '../../questions';
import type { Run } from '../run-store';

export interface TagChange {
  added: string[];
  removed: string[];
}

/**
 * Shows the dialog for `runs`. A tag is initially checked if all `runs` have it. Resolves with undefined if the user
 * cancels.
 */
export function askForTags(runs: readonly Run[], known: readonly string[]): Promise<TagChange | undefined> {
  const before = (runs[0].summary.tags ?? []).filter(tag => runs.every(({ summary }) => summary.tags?.includes(tag)));
  const tags = [...new Set([...before, ...known])].sort();
  type Item = vscode.QuickPickItem & { tag: string };
  const picker = createQuickPick<Item>();
  picker.title =
    runs.length === 1
      ? vscode.l10n.t('Tags of {0}', runs[0].summary.name)
      : vscode.l10n.t('Tags of {0} Runs', runs.length);
  picker.placeholder = vscode.l10n.t('Select tags, or type new ones separated by commas');
  picker.canSelectMany = true;
  const items = tags.map((tag): Item => ({ label: plain(tag), tag }));
  let typed: Item[] = [];
  picker.items = items;
  picker.selectedItems = items.filter(({ tag }) => before.includes(tag));
  picker.onDidChangeValue(text => {
    const ticked = picker.selectedItems.filter(item => !typed.includes(item)).map(({ tag }) => tag);
    typed = tagsIn(text)
      .filter(tag => !tags.includes(tag))
      .map(tag => ({ label: plain(tag), tag, description: vscode.l10n.t('new'), alwaysShow: true }));
    picker.items = [...typed, ...items];
    picker.selectedItems = [...typed, ...items.filter(({ tag }) => ticked.includes(tag))];
  });
  return new Promise(resolve => {
    picker.onDidAccept(() => {
      const chosen = picker.selectedItems.map(({ tag }) => tag);
      resolve({
        added: chosen.filter(tag => !before.includes(tag)),
        removed: before.filter(tag => !chosen.includes(tag)),
      });
      picker.hide();
    });
    picker.onDidHide(() => {
      resolve(undefined);
      picker.dispose();
    });
    picker.show();
  });
}

/** Parses comma-separated tags and removes the `#` before a tag, if any: `lr, #paper` → `lr`, `paper`. */
const tagsIn = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map(tag => tag.trim().replace(/^#+/, ''))
      .filter(tag => tag !== ''),
  ),
];
