// Live statistics in environment sources, updated at most once per second. Code lenses above `reset` and `step` show
// the statistics of the newest run that uses the file. If errors at a line ended episodes, the line shows the number of
// these episodes. Editing a file does not change the statistics, because they describe the code that the run uses.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { environmentProblems } from './environment-problems';
import { plain, unlinked } from '../plain-text';
import type { Run, RunStore } from '../runs/run-store';
import {
  countedSteps,
  environmentFigures,
  methodLines,
  formatReset,
  formatStep,
  type EnvironmentFigures,
} from './environment-figures';
import type { EpisodeHeads } from '../run-files/episodes/episode-heads';

const refreshMs = 1000;

/** A run that uses the environment in the open file, and the environment's version and tags in this run. */
interface Runner {
  run: Run;
  version: string;
  tags: Set<string>;
}

export class EnvironmentLenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly erring = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor('editorError.foreground'), margin: '0 0 0 3em' },
    overviewRulerColor: new vscode.ThemeColor('editorError.foreground'),
    overviewRulerLane: vscode.OverviewRulerLane.Right,
  });
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  /** Cached source files by run folder and version. They stay valid, because saved sources never change. */
  private readonly sources = new Map<string, Promise<string[]>>();

  constructor(
    private readonly store: RunStore,
    private readonly heads: EpisodeHeads,
  ) {
    const soon = () => this.soon();
    this.subscriptions = [
      this.changed,
      this.erring,
      vscode.languages.registerCodeLensProvider({ language: 'typescript', scheme: 'file' }, this),
      store.onDidTouch(soon),
      store.onDidChange(soon),
      vscode.window.onDidChangeVisibleTextEditors(soon),
    ];
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const methods = methodLines(document.getText());
    const runner = methods.length > 0 ? await this.runnerOf(document.uri.fsPath) : undefined;
    const figures = runner && (await this.figuresOf(runner));
    if (!figures) return [];
    return methods.map(({ name, line }) => {
      const title = plain(name === 'reset' ? formatReset(figures) : formatStep(figures));
      const tooltip = vscode.l10n.t('Open the episodes of {0}', figures.run);
      const command = { title, tooltip, command: 'ragen.openEpisodes', arguments: [runner.run.folder] };
      return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command);
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire();
      void this.mark();
    }, refreshMs);
  }

  /** Returns the newest run that uses a file. */
  private async runnerOf(path: string): Promise<Runner | undefined> {
    for (const run of this.store.runs) {
      const newest = new Map((await run.reader.versions()).map(({ tag, version }) => [tag, version]));
      for (const version of new Set(newest.values())) {
        if (!(await this.filesOf(run, version)).includes(path)) continue;
        const tags = new Set([...newest].filter(([, its]) => its === version).map(([tag]) => tag));
        return { run, version, tags };
      }
    }
    return undefined;
  }

  private filesOf({ folder, reader }: Run, version: string): Promise<string[]> {
    const key = JSON.stringify([folder, version]);
    const known =
      this.sources.get(key) ??
      reader.keptEnvironment(version).then(kept => kept?.sources.map(name => join(kept.root, name)) ?? []);
    this.sources.set(key, known);
    // An empty result is not cached: the trainer may write the sources to the run folder later.
    void known.then(files => files.length === 0 && this.sources.delete(key));
    return known;
  }

  private async figuresOf({ run, version, tags }: Runner): Promise<EnvironmentFigures | undefined> {
    const steps = (await run.reader.episodeSteps()).filter(({ mode }) => mode === 'train').slice(-countedSteps);
    const heads = await Promise.all(steps.map(step => this.heads.of(run.folder, step)));
    const { events } = await run.reader.numbers();
    return environmentFigures(run.summary.name, { version, tags }, heads.flat(), events);
  }

  /** In visible editors of environment sources, marks the lines at which errors ended episodes. */
  private async mark(): Promise<void> {
    for (const editor of vscode.window.visibleTextEditors) {
      const { document } = editor;
      if (document.uri.scheme !== 'file' || document.languageId !== 'typescript') continue;
      const runner = await this.runnerOf(document.uri.fsPath);
      const { events } = runner ? await runner.run.reader.numbers() : { events: [] };
      const problems = environmentProblems(events).filter(
        ({ file, severity }) => file === document.uri.fsPath && severity === 'warning',
      );
      const marks = problems
        .filter(({ line }) => line <= document.lineCount)
        .map(({ line, message }) => ({
          range: document.lineAt(line - 1).range,
          hoverMessage: new vscode.MarkdownString().appendText(unlinked(message)),
          renderOptions: { after: { contentText: message.split(' — ').at(-1) } },
        }));
      editor.setDecorations(this.erring, marks);
    }
  }
}
