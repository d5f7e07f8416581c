// The editor column in which a page opens. Beside a text editor if there is room for both; otherwise in the active column,
// because a page and code that share a narrow window are both unreadable. VS Code does not tell an extension the size of
// its window; pages report it (protocol/page-state.ts).
import * as vscode from 'vscode';
import { Messenger } from 'vscode-messenger';
import { windowWidth } from '../../protocol/page-state';

/** Minimum width of a window, in CSS pixels, in which a page opens beside code: side bar, code and a page of 480 px. */
export const leastWidth = 1200;

/** The newest width that a page of this window reported; undefined until a page has been open. */
let width: number | undefined;

/** The messenger of a page; it also receives the width of the window. */
export class PageMessenger extends Messenger {
  constructor() {
    super();
    this.onNotification(windowWidth, reported => {
      width = reported.width;
    });
  }
}

/**
 * Returns the column for a new page: the active column if no text editor is active or the window is narrow; a second
 * column beside the text; and if there are several columns, the one beside the text, so that no third one opens.
 */
export function pageColumn(): vscode.ViewColumn {
  const column = vscode.window.activeTextEditor?.viewColumn;
  const groups = vscode.window.tabGroups.all.map(({ viewColumn }) => viewColumn);
  return besideText(column, groups, width);
}

/**
 * The rule of `pageColumn`.
 * @param text column of the active text editor; undefined without one
 * @param groups columns of all editor groups
 * @param windowPx width of the window in CSS pixels; undefined if it is not known
 */
export function besideText(
  text: number | undefined,
  groups: readonly number[],
  windowPx: number | undefined,
): vscode.ViewColumn {
  if (text === undefined) return vscode.ViewColumn.Active;
  const others = groups.filter(group => group !== text);
  if (others.length > 0) return others[others.length - 1];
  return windowPx !== undefined && windowPx < leastWidth ? vscode.ViewColumn.Active : vscode.ViewColumn.Beside;
}
