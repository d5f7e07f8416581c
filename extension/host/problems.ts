// Mistakes in configuration files, shown where they are: in the Problems view at file and line. They come from two sides: what the trainer
// said of a start or a check, and what is seen while a file is being written. What both say is shown once. What the trainer said of a file
// stays until its text changes, or the trainer says otherwise.
import { isAbsolute, join } from 'node:path';
import * as vscode from 'vscode';
import { appendAll } from '../protocol/lists';
import type { ConfigProblem } from './start-run';

/** A diagnostic whose code is the key that it is about. */
export type KeyDiagnostic = vscode.Diagnostic & { code: string };

export class Problems implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('ragen');
  /** What the trainer said, by what it was asked about, with absolute files. */
  private readonly told = new Map<string, (ConfigProblem & { file: string })[]>();
  /** What was seen while writing, by URI. */
  private readonly seen = new Map<string, KeyDiagnostic[]>();
  private readonly changed = vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
    if (contentChanges.length > 0) this.forget(document.uri.fsPath);
  });

  /**
   * Shows the problems that name a file, in place of all that were told of `about` before; relative files are taken from `cwd`. Answers
   * how many.
   */
  show(problems: ConfigProblem[], cwd: string, about = 'start'): number {
    const placed = problems.flatMap(problem =>
      problem.file === undefined
        ? []
        : [{ ...problem, file: isAbsolute(problem.file) ? problem.file : join(cwd, problem.file) }],
    );
    this.told.set(about, placed);
    this.draw();
    return placed.length;
  }

  /** Takes back what was told of `about`. */
  clear(about = 'start'): void {
    if (this.told.delete(about)) this.draw();
  }

  /** Shows what is seen in a file as it is written, in place of what was seen before. */
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
    for (const [about, problems] of this.told) {
      const others = problems.filter(problem => problem.file !== file);
      gone ||= others.length < problems.length;
      this.told.set(about, others);
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
    for (const problem of [...this.told.values()].flat()) {
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
  // From the place to the end of its line: the editor cuts a range at the line's end.
  const range = new vscode.Range(row, from, row, 1000);
  const diagnostic = new vscode.Diagnostic(range, message.replace(/^config: /, ''), vscode.DiagnosticSeverity.Error);
  diagnostic.source = 'RAGEN';
  return Object.assign(diagnostic, { code: key ?? '' });
}
