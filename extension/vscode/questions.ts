// The lists and input boxes of the editor with which the extension asks the user. They stay open while the focus is
// elsewhere: a page that takes the focus after a delay, for example while a window is restored, must not discard a
// question or what the user has typed. Escape closes them.
import * as vscode from 'vscode';

/** As vscode.window.showQuickPick. */
export const showQuickPick = ((items: readonly vscode.QuickPickItem[], options: vscode.QuickPickOptions = {}) =>
  vscode.window.showQuickPick(items, { ...options, ignoreFocusOut: true })) as typeof vscode.window.showQuickPick;

/** As vscode.window.showInputBox. */
export const showInputBox = (options: vscode.InputBoxOptions): Thenable<string | undefined> =>
  vscode.window.showInputBox({ ...options, ignoreFocusOut: true });

/** As vscode.window.createQuickPick. */
export function createQuickPick<T extends vscode.QuickPickItem>(): vscode.QuickPick<T> {
  const pick = vscode.window.createQuickPick<T>();
  pick.ignoreFocusOut = true;
  return pick;
}

/** As vscode.window.createInputBox. */
export function createInputBox(): vscode.InputBox {
  const box = vscode.window.createInputBox();
  box.ignoreFocusOut = true;
  return box;
}
