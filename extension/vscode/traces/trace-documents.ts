// Read-only documents of the `ragen-trace:` scheme: episodes formatted from the run folder. The most recent documents
// are cached with their token positions. When the file of a step is rewritten, for example by a resume, the open
// documents of the step's episodes are updated.
import { basename, join } from 'node:path';
import * as vscode from 'vscode';
import { readBounded } from '../../node/bounded-file';
import { jsonOrNothing } from '../../common/json';
import { episodeFile, runFiles } from '../../run-data/run-file-names';
import { manifestIn } from '../../run-data/run-manifest';
import type { Manifest } from '../../run-data/run-manifest';
import { readManifestCode, untrusted } from '../../node/run-trust';
import type { Run, RunStore } from '../runs/run-store';
import { EpisodeHeads, fileStamp } from '../run-files/episodes/episode-heads';
import { tokenBytes, type TokenBytes } from './tokens/token-bytes';
import { clipRange, type ClipRange } from './tokens/token-facts';
import { traceOf, type Trace } from './trace-text';
import { parseTraceUri, traceScheme, type TraceLocation } from './trace-uri';

/** An open episode. */
export interface OpenTrace {
  trace: Trace;
  location: TraceLocation;
  clip: ClipRange | null;
  /** Stamp (`fileStamp`) that the episode's file had when the episode was read. */
  stamp: string;
}

/** Number of documents that are cached. */
const remembered = 24;

export class TraceDocuments implements vscode.FileSystemProvider, vscode.Disposable {
  readonly heads = new EpisodeHeads();
  private readonly traces = new Map<string, Promise<OpenTrace>>();
  private readonly tokenizers = new Map<string, Promise<TokenBytes | null>>();
  private readonly manifests = new Map<string, Manifest>();
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  private readonly subscriptions: vscode.Disposable[];
  readonly onDidChangeFile = this.changed.event;

  constructor(
    private readonly store: RunStore,
    private readonly extensionPath: string,
    private readonly log: vscode.LogOutputChannel,
  ) {
    const message = new vscode.MarkdownString(vscode.l10n.t('Recorded episodes are read-only.'));
    this.subscriptions = [
      vscode.workspace.registerFileSystemProvider(traceScheme, this, { isCaseSensitive: true, isReadonly: message }),
      store.onDidTouch(folder => void this.look(folder)),
      this.changed,
    ];
  }

  /** Returns the episode that the document at a URI shows. Throws FileNotFound if the episode does not exist. */
  async open(uri: vscode.Uri): Promise<OpenTrace> {
    const key = uri.toString();
    const known = this.traces.get(key) ?? this.load(uri);
    this.traces.delete(key);
    this.traces.set(key, known);
    for (const old of [...this.traces.keys()].slice(0, -remembered)) this.traces.delete(old);
    known.catch(() => this.traces.delete(key));
    return known;
  }

  /** Returns the episode of a document; undefined if the document is not a trace or shows outdated text. */
  async of(document: vscode.TextDocument): Promise<OpenTrace | undefined> {
    if (document.uri.scheme !== traceScheme) return undefined;
    const open = await this.open(document.uri).catch(() => undefined);
    return open && open.trace.text.length === document.getText().length ? open : undefined;
  }

  /** Returns the run of an episode. Throws FileNotFound if the workspace does not contain the run. */
  async run({ folder }: TraceLocation): Promise<Run> {
    const run = this.store.get(folder) ?? (await this.store.find(folder));
    if (!run)
      throw vscode.FileSystemError.FileNotFound(vscode.l10n.t('The run of this episode no longer exists: {0}', folder));
    return run;
  }

  /** Returns a run's manifest; undefined if it cannot be read. */
  async manifest(folder: string): Promise<Manifest | undefined> {
    const known =
      this.manifests.get(folder) ??
      manifestIn(basename(folder)).safeParse(await json(join(folder, runFiles.manifest), folder)).data;
    if (known) this.manifests.set(folder, known);
    return known;
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const { trace, stamp } = await this.open(uri);
    const mtime = Math.floor(Number(stamp.split(':')[2]));
    return {
      type: vscode.FileType.File,
      ctime: mtime,
      mtime,
      size: Buffer.byteLength(trace.text),
      permissions: vscode.FilePermission.Readonly,
    };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    return Buffer.from((await this.open(uri)).trace.text, 'utf8');
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined); // no watcher is needed, because look() detects changes
  }
  readDirectory(): [string, vscode.FileType][] {
    return [];
  }
  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
  writeFile(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async load(uri: vscode.Uri): Promise<OpenTrace> {
    const location = parseTraceUri(uri);
    if (!location) throw vscode.FileSystemError.FileNotFound(uri);
    const { summary } = await this.run(location);
    const file = fileOf(location);
    const stamp = await fileStamp(file);
    const episode = await this.heads.episode(file, location.id, location.folder);
    if (!episode)
      throw vscode.FileSystemError.FileNotFound(
        vscode.l10n.t(
          'Episode {0} is no longer in the run folder; the run may have repeated its step after a resume.',
          location.id,
        ),
      );
    const [bytes, manifest] = await Promise.all([this.tokenizer(location.folder), this.manifest(location.folder)]);
    const clip = manifest ? clipRange(manifest) : null;
    return { trace: traceOf(episode, summary.name, bytes), location, clip, stamp };
  }

  /** Returns the run's vocabulary; null if no tokenizer.json is found. */
  private tokenizer(folder: string): Promise<TokenBytes | null> {
    const known = this.tokenizers.get(folder) ?? this.findTokenizer(folder);
    this.tokenizers.set(folder, known);
    void known.then(bytes => {
      if (!bytes) this.tokenizers.delete(folder); // not cached, because a checkpoint may add a tokenizer later
    });
    return known;
  }

  /**
   * Finds the run's tokenizer. This is the copy in the run folder. For older runs, which have no copy, it is the
   * tokenizer of a checkpoint or of the model folder.
   */
  private async findTokenizer(folder: string): Promise<TokenBytes | null> {
    const run = this.store.get(folder);
    const checkpoints = (await run?.reader.checkpoints()) ?? [];
    const model = (await this.manifest(folder))?.model.path ?? '';
    const workspace = join(folder, '..', '..', '..');
    const candidates = [
      { file: join(folder, runFiles.tokenizer), within: folder },
      ...checkpoints.map(name => ({
        file: join(folder, runFiles.checkpoints, name, runFiles.tokenizer),
        within: folder,
      })),
      ...(/^[\w.-]+$/.test(model)
        ? [{ file: join(this.extensionPath, 'media', 'models', model, runFiles.tokenizer), within: null }]
        : []),
      // The model folder may be outside the workspace or, on Windows, even on another machine. It is therefore read
      // only if the manifest is trusted.
      ...(vscode.workspace.isTrusted && isTrustedManifest(folder)
        ? [{ file: join(model.startsWith('/') ? '' : workspace, model, runFiles.tokenizer), within: null }]
        : []),
    ];
    for (const { file, within } of candidates) {
      const parsed = await json(file, within);
      if (parsed === undefined) continue;
      try {
        return tokenBytes(parsed, file);
      } catch (error) {
        this.log.warn((error as Error).message);
      }
    }
    return null;
  }

  /** Checks whether the files of a run's cached episodes changed. */
  private async look(folder: string): Promise<void> {
    for (const [key, opening] of this.traces) {
      const open = await opening.catch(() => undefined);
      if (open?.location.folder !== folder || (await fileStamp(fileOf(open.location))) === open.stamp) continue;
      this.traces.delete(key);
      this.changed.fire([{ type: vscode.FileChangeType.Changed, uri: vscode.Uri.parse(key) }]);
    }
  }
}

/** Whether this user's trainer signed the manifest, or the user accepted the manifest. */
function isTrustedManifest(folder: string): boolean {
  const code = readManifestCode(folder, basename(folder));
  return code !== undefined && untrusted(basename(folder), [code]).length === 0;
}

/** Returns the path of the file that contains an episode. */
export const fileOf = (location: TraceLocation): string => join(location.folder, episodeFile(location));

/** Maximum size in bytes of a tokenizer or manifest that is read. */
const mostBytes = 2 ** 26;

async function json(file: string, within: string | null): Promise<unknown> {
  return jsonOrNothing((await readBounded(file, { most: mostBytes, within }).catch(() => '')).toString('utf8'));
}
