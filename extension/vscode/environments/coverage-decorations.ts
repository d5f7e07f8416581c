// Draws the line coverage of one run's environments in open editors: how often the run's episodes executed each line.
// Also switches coverage on in the run's trainer. If a file differs from the code that the run uses, the file is not
// decorated, because its line numbers may differ.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { readRunFile } from '../../node/read-run-file';
import { coverageLineSchema } from '../../run-data/environment-snapshot';
import { environmentFile, environmentFiles } from '../../run-data/run-file-names';
import { fileCoverage, formatMark, uncountedCoverage, type FileCoverage, type LineMark } from './environment-coverage';
import { JsonLines } from '../../node/json-lines';
import type { Run, RunStore } from '../runs/run-store';

/** A source file of the environment version that a run uses now. */
interface Source {
  version: string;
  name: string;
}

export class CoverageDecorations implements vscode.Disposable {
  /** Folder of the run whose coverage is drawn. */
  private drawn: string | undefined;
  private readonly types: Record<LineMark['kind'], vscode.TextEditorDecorationType>;
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly store: RunStore) {
    const after = (colour: string) => ({ color: new vscode.ThemeColor(colour), margin: '0 0 0 3em' });
    const [muted, warning] = ['editorCodeLens.foreground', 'editorWarning.foreground'];
    this.types = {
      reached: vscode.window.createTextEditorDecorationType({ after: after(muted) }),
      partly: vscode.window.createTextEditorDecorationType({ after: after(muted) }),
      uncounted: vscode.window.createTextEditorDecorationType({ after: after(muted) }),
      never: vscode.window.createTextEditorDecorationType({ after: after(muted), opacity: '0.55' }),
      unrewarded: vscode.window.createTextEditorDecorationType({
        after: after(warning),
        isWholeLine: true,
        backgroundColor: new vscode.ThemeColor('inputValidation.warningBackground'),
        overviewRulerColor: new vscode.ThemeColor(warning),
        overviewRulerLane: vscode.OverviewRulerLane.Right,
      }),
    };
    this.subscriptions = [
      ...Object.values(this.types),
      store.onDidTouch(folder => folder === this.drawn && void this.draw()),
      vscode.window.onDidChangeVisibleTextEditors(() => void this.draw()),
      vscode.workspace.onDidChangeTextDocument(() => void this.draw()),
    ];
  }

  /**
   * Switches the coverage of a run on or off. This applies both to counting in the trainer and to drawing in the
   * editor. For an ended run, the recorded coverage is drawn.
   */
  async toggle(run: Run): Promise<boolean> {
    const on = this.drawn !== run.folder;
    const before = this.drawn === undefined ? undefined : this.store.get(this.drawn);
    if (before?.summary.live && before.folder !== run.folder) await this.store.trainer(before).coverEnvironments(false);
    if (run.summary.live) await this.store.trainer(run).coverEnvironments(on);
    this.drawn = on ? run.folder : undefined;
    await this.draw();
    return on;
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async draw(): Promise<void> {
    const run = this.drawn === undefined ? undefined : this.store.get(this.drawn);
    for (const editor of vscode.window.visibleTextEditors) {
      const coverage = run && (await this.coverageOf(run, editor.document));
      for (const kind of Object.keys(this.types) as LineMark['kind'][]) {
        const marks = coverage?.marks.filter(mark => mark.kind === kind) ?? [];
        editor.setDecorations(
          this.types[kind],
          coverage ? marks.map(mark => decorated(mark, editor.document, coverage)) : [],
        );
      }
    }
  }

  private async coverageOf(
    { folder, reader, summary }: Run,
    document: vscode.TextDocument,
  ): Promise<FileCoverage | undefined> {
    if (document.uri.scheme !== 'file') return undefined;
    const newest = new Map((await reader.versions()).map(({ tag, version }) => [tag, version]));
    for (const version of new Set(newest.values())) {
      const source = await sourceOf(reader, version, document.uri.fsPath);
      if (!source) continue;
      const file = (name: string) => environmentFile(version, name);
      const bytes = await readRunFile(folder, file(`${environmentFiles.sources}/${source.name}`)).catch(
        () => undefined,
      );
      const kept = bytes?.toString('utf8');
      if (kept !== document.getText()) continue;
      const counted = join(folder, file(environmentFiles.coverage));
      const { lines } = await new JsonLines(counted, coverageLineSchema, folder).read();
      if (lines.length === 0 && summary.live) return uncountedCoverage(kept);
      const coverage = fileCoverage(lines, source.name, kept);
      if (coverage) return coverage;
    }
    return undefined;
  }
}

async function sourceOf(reader: Run['reader'], version: string, path: string): Promise<Source | undefined> {
  const kept = await reader.keptEnvironment(version);
  const name = kept?.sources.find(name => join(kept.root, name) === path);
  return name === undefined ? undefined : { version, name };
}

function decorated(mark: LineMark, document: vscode.TextDocument, { steps }: FileCoverage): vscode.DecorationOptions {
  const { range } = document.lineAt(Math.min(mark.line, document.lineCount) - 1);
  const hover = steps
    ? vscode.l10n.t('{0} in training steps {1} to {2}', formatMark(mark), steps[0], steps[1])
    : vscode.l10n.t('No step of this version has been counted yet. Counts appear at the end of the next step.');
  return {
    range,
    hoverMessage: new vscode.MarkdownString().appendText(hover),
    renderOptions: { after: { contentText: formatMark(mark) } },
  };
}
