// Notifications, questions, progress and status bar messages. Only this module may call the VS Code functions that show
// them (enforced by eslint.config.js). The module escapes all texts, because run names, errors and model output must
// not be shown as links or icons. The callers write the texts: runs/view/failure-notice.ts those about failed runs.
import * as vscode from 'vscode';
import { plain } from './plain-text';

/** Shows a notification with buttons and returns the button pressed. */
export const notifyError = (message: string, ...choices: string[]): Thenable<string | undefined> =>
  vscode.window.showErrorMessage(plain(message), ...choices);
export const notifyWarning = (message: string, ...choices: string[]): Thenable<string | undefined> =>
  vscode.window.showWarningMessage(plain(message), ...choices);
export const notifyInformation = (message: string, ...choices: string[]): Thenable<string | undefined> =>
  vscode.window.showInformationMessage(plain(message), ...choices);

/** Shows a modal question. Returns the choice, or undefined if the user dismissed the question. */
export const confirmAction = (question: string, detail: string, choice: string): Thenable<string | undefined> =>
  chooseAction(question, detail, [choice]);

/** Shows a modal question with several choices. Returns the choice, or undefined if the user dismissed the question. */
export const chooseAction = (
  question: string,
  detail: string,
  choices: readonly string[],
): Thenable<string | undefined> =>
  vscode.window.showWarningMessage(plain(question), { modal: true, detail: plain(detail) }, ...choices);

/** Shows a status bar message for `ms` milliseconds. `icon` is an optional codicon, shown before the message. */
export const notifyBriefly = (message: string, ms: number, icon?: string): vscode.Disposable =>
  vscode.window.setStatusBarMessage(`${icon === undefined ? '' : `$(${icon}) `}${plain(message)}`, ms);

/**
 * Shows a progress notification while `task` runs. Links and icons in the title and in reported messages are not
 * interpreted.
 */
export function withProgress<R>(
  { title, ...options }: vscode.ProgressOptions,
  task: (progress: { report(message: string): void }, token: vscode.CancellationToken) => Thenable<R>,
): Thenable<R> {
  return vscode.window.withProgress(
    { ...options, title: title === undefined ? title : plain(title) },
    (progress, token) => task({ report: message => progress.report({ message: plain(message) }) }, token),
  );
}
