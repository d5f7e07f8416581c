// Mistakes in configuration files, shown where they are: in the Problems view at file and line. They stay until the file is
// saved again, or the next start says otherwise.
import { isAbsolute, join } from 'node:path';
import * as vscode from 'vscode';
import type { ConfigProblem } from './start-run';

export class Problems implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('ragen');
  private readonly saved = vscode.workspace.onDidSaveTextDocument(document => this.collection.delete(document.uri));

  /** Shows the problems that name a file, in place of all before; relative files are taken from `cwd`. Answers how many. */
  show(problems: ConfigProblem[], cwd: string): number {
    this.collection.clear();
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const problem of problems) {
      if (problem.file === undefined) continue;
      const file = isAbsolute(problem.file) ? problem.file : join(cwd, problem.file);
      byFile.set(file, [...(byFile.get(file) ?? []), diagnosticOf(problem)]);
    }
    for (const [file, diagnostics] of byFile) this.collection.set(vscode.Uri.file(file), diagnostics);
    return [...byFile.values()].flat().length;
  }

  clear(): void {
    this.collection.clear();
  }

  dispose(): void {
    this.collection.dispose();
    this.saved.dispose();
  }
}

function diagnosticOf({ message, line, column }: ConfigProblem): vscode.Diagnostic {
  const [row, from] = [Math.max(0, (line ?? 1) - 1), Math.max(0, (column ?? 1) - 1)];
  // From the place to the end of its line: the editor cuts a range at the line's end.
  const diagnostic = new vscode.Diagnostic(
    new vscode.Range(row, from, row, 1000),
    message,
    vscode.DiagnosticSeverity.Error,
  );
  diagnostic.source = 'RAGEN';
  return diagnostic;
}
