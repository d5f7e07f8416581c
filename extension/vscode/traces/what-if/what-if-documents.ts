// Read-only documents of unfinished what-if episodes that the user plays: states, answers and rewards of the turns so
// far.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { formatSigned } from '../../../common/numbers';
import type { EpisodeRef, WhatIfState } from '../../../protocol/inspection';
import type { Episode } from '../../../run-data/episode';
import { shortId } from '../trace-text';

/** URI scheme of the documents. */
const scheme = 'ragen-what-if';

export class WhatIfDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  /** Texts of the documents by path. */
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly provider: vscode.Disposable;
  readonly onDidChange = this.changed.event;

  constructor() {
    this.provider = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  }

  provideTextDocumentContent({ path }: vscode.Uri): string {
    return this.texts.get(path) ?? '';
  }

  dispose(): void {
    this.provider.dispose();
    this.changed.dispose();
  }

  /** Shows the current state of an episode, in its existing document or a new one. Returns the document's URI. */
  show({ folder, id }: Pick<EpisodeRef, 'folder' | 'id'>, { session, episode }: WhatIfState): vscode.Uri {
    const uri = vscode.Uri.from({ scheme, path: `/${basename(folder)}/${session}/${shortId(id)}` });
    this.texts.set(uri.path, textOf(episode));
    this.changed.fire(uri);
    return uri;
  }

  async close(uri: vscode.Uri): Promise<void> {
    await closeTab(uri);
    this.texts.delete(uri.path);
  }
}

/** Formats an unfinished episode as text: states, answers and rewards of its turns, and the current state. */
function textOf({ turns, final_state, reward }: Episode): string {
  const played = turns.flatMap(({ turn, state, raw, reward: earned }) => [
    vscode.l10n.t('── turn {0} ──', turn),
    state,
    '',
    raw,
    '',
    vscode.l10n.t('reward {0}', formatSigned(earned)),
    '',
  ]);
  const now = vscode.l10n.t('── turn {0} · return {1} ──', turns.length + 1, formatSigned(reward));
  return [...played, now, final_state, ''].join('\n');
}

async function closeTab(uri: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap(group => group.tabs);
  const own = tabs.filter(
    ({ input }) => input instanceof vscode.TabInputText && input.uri.toString() === uri.toString(),
  );
  if (own.length > 0) await vscode.window.tabGroups.close(own, true);
}
