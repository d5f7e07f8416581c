// Diagnostics in the Problems view for environments of live runs. Code that the run rejected is marked as an error. A
// line at which an error ended episodes is marked with a warning. A diagnostic is removed when the code is fixed or the
// run ends.
import * as vscode from 'vscode';
import { environmentProblems, type EnvironmentProblem } from './environment-problems';
import type { RunStore } from '../runs/run-store';

export class EnvironmentDiagnostics implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection('ragen-environments');
  private readonly byRun = new Map<string, EnvironmentProblem[]>();
  private readonly subscriptions: vscode.Disposable[];
  private shown = '';

  constructor(private readonly store: RunStore) {
    this.subscriptions = [
      store.onDidTouch(folder => void this.read(folder)),
      store.onDidChange(() => this.draw()),
      this.collection,
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async read(folder: string): Promise<void> {
    const run = this.store.get(folder);
    if (!run?.summary.live) return;
    const { events } = await run.reader.events();
    this.byRun.set(folder, environmentProblems(events));
    this.draw();
  }

  private draw(): void {
    const live = new Set(this.store.runs.filter(({ summary }) => summary.live).map(({ folder }) => folder));
    for (const folder of this.byRun.keys()) if (!live.has(folder)) this.byRun.delete(folder);
    const problems = [...this.byRun.values()].flat();
    const shown = JSON.stringify(problems);
    if (shown === this.shown) return;
    this.shown = shown;
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const problem of problems) {
      const { file } = problem;
      byFile.set(file, [...(byFile.get(file) ?? []), diagnosticOf(problem)]);
    }
    this.collection.clear();
    for (const [file, diagnostics] of byFile) this.collection.set(vscode.Uri.file(file), diagnostics);
  }
}

function diagnosticOf({ line, column, endLine = line, endColumn, message, severity }: EnvironmentProblem) {
  const end = endColumn === undefined ? 1000 : endColumn - 1; // VS Code clips a range at the line's end
  const diagnostic = new vscode.Diagnostic(
    new vscode.Range(line - 1, column - 1, endLine - 1, end),
    message,
    severity === 'error' ? vscode.DiagnosticSeverity.Error : vscode.DiagnosticSeverity.Warning,
  );
  diagnostic.source = 'RAGEN';
  return diagnostic;
}
