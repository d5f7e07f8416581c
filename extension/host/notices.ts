// What the editor tells and asks in notifications, progress and the status bar. Everything goes through here (eslint.config.js sees to it),
// since run names, errors and what a model wrote are in these words: they are shown as text, never as links or icons.
import * as vscode from 'vscode';
import { plain } from './plain-text';

/** A notification with buttons; answers the one that was pressed. */
export const tellError = (message: string, ...choices: string[]): Thenable<string | undefined> =>
  vscode.window.showErrorMessage(plain(message), ...choices);
export const tellWarning = (message: string, ...choices: string[]): Thenable<string | undefined> =>
  vscode.window.showWarningMessage(plain(message), ...choices);
export const tellInformation = (message: string, ...choices: string[]): Thenable<string | undefined> =>
  vscode.window.showInformationMessage(plain(message), ...choices);

/** A question that everything else waits for; answers the choice, undefined where there was none. */
export const askFirst = (question: string, detail: string, choice: string): Thenable<string | undefined> =>
  askAmong(question, detail, [choice]);

/** The same with several choices. */
export const askAmong = (question: string, detail: string, choices: readonly string[]): Thenable<string | undefined> =>
  vscode.window.showWarningMessage(plain(question), { modal: true, detail: plain(detail) }, ...choices);

/** Words in the status bar for `ms`, behind an icon of the editor's where one is named. */
export const tellBriefly = (message: string, ms: number, icon?: string): vscode.Disposable =>
  vscode.window.setStatusBarMessage(`${icon === undefined ? '' : `$(${icon}) `}${plain(message)}`, ms);

/** The editor's progress, by the same rule. */
export function withProgress<R>(
  { title, ...options }: vscode.ProgressOptions,
  task: (progress: { report(message: string): void }, token: vscode.CancellationToken) => Thenable<R>,
): Thenable<R> {
  return vscode.window.withProgress(
    { ...options, title: title === undefined ? title : plain(title) },
    (progress, token) => task({ report: message => progress.report({ message: plain(message) }) }, token),
  );
}
