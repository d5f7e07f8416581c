// Shows diagnostics of configuration files in the Problems view. They have two sources. The trainer reports problems
// when a run starts or a file is checked. The editor's own analysis reports problems while the user types. A problem
// that both sources report is shown once. A problem that the trainer reported for a file is removed when the file's
// text changes or the trainer reports new problems.
import { isAbsolute, join } from 'node:path';
import * as vscode from 'vscode';
import { appendAll } from '../../common/lists';
import type { ConfigProblem } from '../processes/cli-command';

/** A diagnostic whose code is its configuration key. */
export type KeyDiagnostic = vscode.Diagnostic & { code: string };

export class Problems implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('ragen');
  /** Problems from the trainer, with absolute paths. The map's key is the `about` that was passed to `show`. */
  private readonly shown = new Map<string, (ConfigProblem & { file: string })[]>();
  /** Problems that the editor's analysis found while the user typed, by URI. */
  private readonly seen = new Map<string, KeyDiagnostic[]>();
  private readonly changed = vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
    if (contentChanges.length > 0) this.forget(document.uri.fsPath);
  });

  /**
   * Shows the problems whose file is known. They replace all problems that were shown earlier with the same `about`.
   * Relative paths are resolved against `cwd`. Returns the number of problems shown.
   */
  show(problems: ConfigProblem[], cwd: string, about = 'start'): number {
    const located = problems.flatMap(problem =>
      problem.file === undefined
        ? []
        : [{ ...problem, file: isAbsolute(problem.file) ? problem.file : join(cwd, problem.file) }],
    );
    this.shown.set(about, located);
    this.draw();
    return located.length;
  }

  /** Removes the problems that `show` displayed under the key `about`. */
  clear(about = 'start'): void {
    if (this.shown.delete(about)) this.draw();
  }

  /** Replaces the diagnostics that the editor's analysis found in a file while the user typed. */
  see(uri: vscode.Uri, diagnostics: KeyDiagnostic[]): void {
    if (diagnostics.length === 0 && !this.seen.has(uri.toString())) return;
    if (diagnostics.length > 0) this.seen.set(uri.toString(), diagnostics);
    else this.seen.delete(uri.toString());
    this.draw();
  }

  dispose(): void {
    this.collection.dispose();
    this.changed.dispose();
  }

  private forget(file: string): void {
    let gone = false;
    for (const [about, problems] of this.shown) {
      const others = problems.filter(problem => problem.file !== file);
      gone ||= others.length < problems.length;
      this.shown.set(about, others);
    }
    if (gone) this.draw();
  }

  private draw(): void {
    const byFile = new Map<string, [vscode.Uri, KeyDiagnostic[]]>();
    const of = (uri: vscode.Uri): KeyDiagnostic[] => {
      const entry = byFile.get(uri.toString()) ?? [uri, []];
      byFile.set(uri.toString(), entry);
      return entry[1];
    };
    for (const [uri, diagnostics] of this.seen) appendAll(of(vscode.Uri.parse(uri)), diagnostics);
    for (const problem of [...this.shown.values()].flat()) {
      const there = of(vscode.Uri.file(problem.file));
      const diagnostic = diagnosticOf(problem);
      const isKnown = ({ code, message, range }: KeyDiagnostic): boolean =>
        (code !== '' && code === diagnostic.code) ||
        (message === diagnostic.message && range.start.isEqual(diagnostic.range.start));
      if (!there.some(isKnown)) there.push(diagnostic);
    }
    this.collection.clear();
    for (const [uri, diagnostics] of byFile.values()) this.collection.set(uri, diagnostics);
  }
}

function diagnosticOf({ message, line, column, key }: ConfigProblem): KeyDiagnostic {
  const [row, from] = [Math.max(0, (line ?? 1) - 1), Math.max(0, (column ?? 1) - 1)];
  // VS Code clips the range at the end of the line.
  const range = new vscode.Range(row, from, row, 1000);
  const diagnostic = new vscode.Diagnostic(range, message.replace(/^config: /, ''), vscode.DiagnosticSeverity.Error);
  diagnostic.source = 'RAGEN';
  return Object.assign(diagnostic, { code: key ?? '' });
}
