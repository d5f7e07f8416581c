// The pictures of states in traces: on hover, as thumbnails in the gutter beside the turns, and by a code lens that opens
// the picture in the editor. Pictures are files of the run folder, checked before they are shown; a trace of many turns
// reads only those that are shown.
import * as vscode from 'vscode';
import { pictureFiles } from '../../node/episode-pictures';
import type { OpenTrace, TraceDocuments } from './trace-documents';
import { rangeOf } from './trace-structure';
import { traceScheme } from './trace-uri';

/** Maximum number of turns with a thumbnail, because each needs a decoration type of the editor. */
const mostThumbnails = 64;
/** Width of a picture on hover, in pixels. */
const hoverWidth = 320;

/** Returns the content of a hover with the pictures of a state; undefined if it has none. */
export async function pictureHover(
  { trace, location }: OpenTrace,
  names: readonly (string | null)[] = [],
): Promise<vscode.MarkdownString | undefined> {
  const files = await pictureFiles(location.folder, trace.episode, names);
  if (files.length === 0) return undefined;
  const images = files.map((file, i) => `![${i + 1}](${vscode.Uri.file(file).toString()}|width=${hoverWidth})`);
  return new vscode.MarkdownString(images.join('\n\n'));
}

/** The lens of a picture whose file has not been read yet. */
class PictureLens extends vscode.CodeLens {
  /** @param files returns the path of the picture; none if it is missing or refused */
  constructor(
    range: vscode.Range,
    readonly title: string,
    readonly files: () => Promise<string[]>,
  ) {
    super(range);
  }
}

const openPicture = (title: string, file: string): vscode.Command => ({
  title,
  tooltip: vscode.l10n.t('Open the picture of the state'),
  command: 'vscode.open',
  arguments: [vscode.Uri.file(file), { viewColumn: vscode.ViewColumn.Beside, preview: true }],
});

/** A lens without a command is a text. */
const missing = (title: string): vscode.Command => ({ title: vscode.l10n.t('{0} missing', title), command: '' });

export class TracePictures implements vscode.CodeLensProvider<PictureLens>, vscode.Disposable {
  private readonly thumbnails = new Map<vscode.TextEditor, vscode.TextEditorDecorationType[]>();
  private readonly subscription: vscode.Disposable;

  constructor(private readonly documents: TraceDocuments) {
    this.subscription = vscode.Disposable.from(
      vscode.window.onDidChangeVisibleTextEditors(editors => void this.decorate(editors)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        const editors = vscode.window.visibleTextEditors.filter(editor => editor.document === document);
        for (const editor of editors) this.clear(editor);
        void this.decorate(vscode.window.visibleTextEditors);
      }),
    );
    void this.decorate(vscode.window.visibleTextEditors);
  }

  dispose(): void {
    this.subscription.dispose();
    for (const editor of [...this.thumbnails.keys()]) this.clear(editor);
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<PictureLens[]> {
    const open = await this.documents.of(document);
    if (!open) return [];
    const { episode, turns } = open.trace;
    return turns.flatMap(({ heading, turn: { pictures = [] } }) =>
      pictures.flatMap((name, i) => {
        if (name === null) return [];
        const title = pictures.length > 1 ? vscode.l10n.t('picture {0}', i + 1) : vscode.l10n.t('picture');
        return [
          new PictureLens(rangeOf(document, heading), title, () => pictureFiles(open.location.folder, episode, [name])),
        ];
      }),
    );
  }

  /** Sets the command of a lens that is visible; only now its picture's file is read and checked. */
  async resolveCodeLens(lens: PictureLens): Promise<PictureLens> {
    const { title } = lens;
    const [file] = await lens.files();
    lens.command = file === undefined ? missing(title) : openPicture(title, file);
    return lens;
  }

  /** Draws thumbnails in the gutters of editors that have none yet, and removes those of closed editors. */
  private async decorate(editors: readonly vscode.TextEditor[]): Promise<void> {
    for (const editor of [...this.thumbnails.keys()]) if (!editors.includes(editor)) this.clear(editor);
    for (const editor of editors) {
      if (editor.document.uri.scheme !== traceScheme || this.thumbnails.has(editor)) continue;
      const types: vscode.TextEditorDecorationType[] = [];
      this.thumbnails.set(editor, types);
      const open = await this.documents.of(editor.document);
      const pictured = open?.trace.turns.filter(({ turn }) => turn.pictures) ?? [];
      for (const { heading, turn } of pictured.slice(0, mostThumbnails)) {
        const [file] = await pictureFiles(open!.location.folder, open!.trace.episode, turn.pictures!);
        if (file === undefined || this.thumbnails.get(editor) !== types) continue;
        const gutterIconPath = vscode.Uri.file(file);
        const type = vscode.window.createTextEditorDecorationType({ gutterIconPath, gutterIconSize: 'contain' });
        types.push(type);
        const { start } = rangeOf(editor.document, heading);
        editor.setDecorations(type, [new vscode.Range(start, start)]);
      }
    }
  }

  private clear(editor: vscode.TextEditor): void {
    for (const type of this.thumbnails.get(editor) ?? []) type.dispose();
    this.thumbnails.delete(editor);
  }
}
