// Decides whether code that a run folder contains or names may be executed. Code that this user's trainer signed, or
// that the user accepted earlier, is executed without a dialog (node/run-trust.ts). Other code is shown in read-only
// editors. In a modal dialog, the user then permits executing this code once or always, or refuses. In an untrusted
// workspace no code is executed. The user accepts exactly the bytes shown: the process that executes the code compares
// the hashes again.
import { basename, join } from 'node:path';
import * as vscode from 'vscode';
import { isRecord, jsonOrNothing } from '../../common/json';
import { manifestIn } from '../../run-data/run-manifest';
import type { Manifest } from '../../run-data/run-manifest';
import { readKeptCode, readManifestCode, untrusted, type ReadCode } from '../../node/run-trust';
import { valueAt } from '../../run-data/changeable-settings';
import { UserError } from '../../common/user-error';
import { acceptFiles } from '../../node/user-storage';
import { chooseAction } from '../notifications';
import type { Run } from './run-store';

/** URI scheme of the documents that show code to accept. */
const scheme = 'ragen-run-code';
/** Maximum number of lines in the dialog that name an environment or a model of the manifest. */
const namedLines = 8;

/** What `ask` returns if the code may be executed. */
export interface TrustedRun {
  /** SHA-256 of each file that the user accepted for this execution only. */
  accepted: string[];
  /** The manifest that was checked. */
  manifest: Manifest;
}

export class RunTrust implements vscode.TextDocumentContentProvider, vscode.Disposable {
  /** Texts of the shown files by document path. A document path contains the hash of the file. */
  private readonly texts = new Map<string, string>();
  private readonly registered: vscode.Disposable;

  constructor() {
    this.registered = vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(scheme, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => uri.scheme === scheme && this.texts.delete(uri.path)),
    );
  }

  provideTextDocumentContent({ path }: vscode.Uri): string {
    return this.texts.get(path) ?? '';
  }

  dispose(): void {
    this.registered.dispose();
  }

  /**
   * Requests, if necessary, the user's permission to use the environments, models and programs that the manifest in
   * `folder` names. `kept` identifies a saved version of an environment; if it is given, the permission also covers the
   * code of this version. Returns undefined if the user refuses.
   * @throws UserError if the workspace is untrusted or the folder contains no run
   */
  async ask(folder: string, kept?: { version: string; tag: string }): Promise<TrustedRun | undefined> {
    if (!vscode.workspace.isTrusted)
      throw new UserError(
        vscode.l10n.t('The workspace is not trusted, so its code cannot run: trust the workspace first.'),
      );
    const run = basename(folder);
    const code = readManifestCode(folder, run);
    const manifest = manifestIn(run).safeParse(code && jsonOrNothing(code.bytes.toString('utf8'))).data;
    if (!code || !manifest)
      throw new UserError(vscode.l10n.t('{0} is not a run folder, because its manifest.json cannot be read.', folder));
    const environment = kept && readKeptCode(folder, run, kept);
    const files = [...(environment ? [environment.bundle, environment.about] : []), code];
    const untrustedFiles = untrusted(run, files);
    if (untrustedFiles.length === 0) return { accepted: [], manifest };

    const [once, always] = [vscode.l10n.t('Run Once'), vscode.l10n.t('Trust This Run’s Code')];
    const shown = await this.show(folder, untrustedFiles);
    const question = vscode.l10n.t('Run the code of “{0}”, which your trainer did not sign?', manifest.name);
    const choice = await chooseAction(question, detailOf(folder, untrustedFiles, manifest), [once, always]);
    // If the user cancels, the documents stay open, so that the user can read them.
    if (choice !== once && choice !== always) return undefined;
    await closeTabs(shown);
    if (choice === once) return { accepted: untrustedFiles.map(({ sha256 }) => sha256), manifest };
    acceptFiles(untrustedFiles.map(({ file, sha256 }) => ({ run, file, sha256 })));
    return { accepted: [], manifest };
  }

  /**
   * Opens a document for each file, with exactly the contents that were read and hashed. The first file is the one that
   * would be executed. It is opened last, so that it is the active document.
   */
  private async show(folder: string, files: readonly ReadCode[]): Promise<vscode.Uri[]> {
    const uris: vscode.Uri[] = [];
    for (const { file, sha256, bytes } of [...files].reverse()) {
      const path = `/${basename(folder)}/${sha256.slice(0, 12)}/${file}`;
      this.texts.set(path, bytes.toString('utf8'));
      const uri = vscode.Uri.from({ scheme, path });
      await vscode.window.showTextDocument(uri, { preview: false });
      uris.push(uri);
    }
    return uris;
  }
}

/** Returns CLI options that permit executing the run's code, or undefined if the user refuses. */
export async function trustOptions({ trust }: { trust: RunTrust }, { folder }: Run): Promise<string[] | undefined> {
  const trusted = await trust.ask(folder);
  return trusted?.accepted.flatMap(sha256 => ['--trust-code', sha256]);
}

async function closeTabs(uris: readonly vscode.Uri[]): Promise<void> {
  const all = new Set(uris.map(String));
  const tabs = vscode.window.tabGroups.all
    .flatMap(group => group.tabs)
    .filter(({ input }) => input instanceof vscode.TabInputText && all.has(input.uri.toString()));
  if (tabs.length > 0) await vscode.window.tabGroups.close(tabs, true);
}

/** Returns the details of the dialog. */
function detailOf(folder: string, files: readonly ReadCode[], manifest: Manifest): string {
  return [
    vscode.l10n.t(
      'The code runs with your permissions. Its files are open in the editor: choose Cancel to read them first.',
    ),
    '',
    ...files.flatMap(({ file, sha256 }) => [join(folder, file), `sha256 ${sha256}`]),
    '',
    vscode.l10n.t('The run uses:'),
    ...namedBy(manifest),
  ].join('\n');
}

/**
 * Returns the environments and the model of a run, one per line. Paths come first: a path can lead to unknown code, but
 * a name without a path is a built-in environment or model.
 */
function namedBy({ config }: Manifest): string[] {
  const tags = ['train', 'val'].flatMap(mode => valueAt(config, `es_manager.${mode}.env_configs.tags`));
  const custom = isRecord(config.custom_envs) ? config.custom_envs : {};
  const types = tags.flatMap(tag => {
    const settings = typeof tag === 'string' && Object.hasOwn(custom, tag) ? custom[tag] : undefined;
    return isRecord(settings) && typeof settings.env_type === 'string' ? [settings.env_type] : [];
  });
  const lines = [
    ...[...new Set(types)].map(type => vscode.l10n.t('environment {0}', type)),
    vscode.l10n.t('model {0}', String(config.model_path)),
  ];
  const isPath = (line: string): boolean => /[\\/]/.test(line);
  const ordered = [...lines.filter(isPath), ...lines.filter(line => !isPath(line))];
  const more = lines.length - namedLines;
  return [...ordered.slice(0, namedLines), ...(more > 0 ? [vscode.l10n.t('and {0} more', more)] : [])];
}
