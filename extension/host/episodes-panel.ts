// The Episodes page's side in the host: all episodes of the run by columns and what comes to them, whole episodes one at a time, and
// searches in their texts.
import { join } from 'node:path';
import * as vscode from 'vscode';
import {
  episodeOpen,
  episodesFound,
  episodesGrew,
  episodesReady,
  episodesSearch,
  episodesSearchEnd,
  episodeTrace,
} from '../protocol/episodes-page';
import { EpisodeIndex } from './episodes/episode-index';
import { ThreadScanner } from './episodes/thread-scanner';
import type { OpenPage, PageKind } from './page-panels';
import type { RunStore } from './run-store';

/** What the pages need of the extension: where it lies, and a folder of its own for the workspace (null where there is none). */
export interface EpisodesPlaces {
  extensionPath: string;
  storage: string | null;
}

export function episodesKind(store: RunStore, places: EpisodesPlaces): PageKind {
  return {
    viewType: 'ragen.episodes',
    bundle: 'episodes',
    title: run => vscode.l10n.t('{0} · Episodes', run),
    icon: 'episodes.svg',
    serve: page => serveEpisodes(page, store, places),
  };
}

/** Milliseconds between two tellings while files are gone through, and until a young file is looked at again. */
const pace = { telling: 250, young: 1000 };

function serveEpisodes(page: OpenPage, store: RunStore, { extensionPath, storage }: EpisodesPlaces): vscode.Disposable {
  const { messenger, panel } = page;
  const scanner = new ThreadScanner(join(extensionPath, 'dist', 'episode-worker.cjs'));
  const index = new EpisodeIndex(page.folder, storage, scanner);
  /** What the page has; undefined until it has asked. */
  let sent: { epoch: number; rows: number; rest: string } | undefined;
  let told = 0;
  let again: NodeJS.Timeout | undefined;

  const standing = () => {
    const { summary: run } = page.run();
    return {
      run,
      epoch: index.epoch,
      read: index.read,
      rest: JSON.stringify([run.live, run.status.state, run.status.step > 0, index.read]),
    };
  };
  const tell = () => {
    if (!sent || !panel.visible || !store.get(page.folder)) return;
    const { run, epoch, read, rest } = standing();
    const from = sent.epoch === epoch ? sent.rows : 0;
    if (sent.epoch === epoch && from === index.table.rows && rest === sent.rest) return;
    const rows = index.table.slice(from);
    sent = { epoch, rows: index.table.rows, rest };
    messenger.sendNotification(episodesGrew, page.page, { run, epoch, read, from, rows });
  };
  const update = async () => {
    const young = await index.update(() => {
      if (performance.now() - told < pace.telling) return;
      told = performance.now();
      tell();
    });
    tell();
    clearTimeout(again);
    if (young) again = setTimeout(queue, pace.young);
  };
  const queue = () => {
    if (sent && panel.visible) update().catch(() => undefined); // the folder is gone, or being written: the next touch reads on
  };

  // What the index tells is there at once; files that it does not tell of follow as they are gone through.
  const read = () =>
    new Promise<void>((resolve, reject) => {
      index.update(resolve).then(young => {
        if (young) again = setTimeout(queue, pace.young);
        resolve();
        tell();
      }, reject);
    });
  let begun: Promise<void> | undefined = read(); // while the page itself is being loaded
  begun.catch(() => undefined); // told to the page when it asks
  messenger.onRequest(episodesReady, async () => {
    const first = begun ?? read();
    begun = undefined;
    await first;
    const { rest, ...about } = standing();
    sent = { epoch: index.epoch, rows: index.table.rows, rest };
    queue(); // what came while the page was being loaded
    return { ...about, rows: index.table.slice(0) };
  });
  messenger.onRequest(episodeOpen, ref => index.episode(ref));
  messenger.onRequest(episodesSearch, async ({ search, epoch, terms, rows }) => {
    if (epoch !== index.epoch) return null;
    const all: Int32Array[] = [];
    const finished = await index.search(rows, terms, (found, share) => {
      all.push(found);
      messenger.sendNotification(episodesFound, page.page, { search, found, share });
    });
    return finished && epoch === index.epoch ? joined(all) : null;
  });
  messenger.onNotification(episodesSearchEnd, () => scanner.end());
  messenger.onNotification(
    episodeTrace,
    named => void vscode.commands.executeCommand('ragen.openTrace', { folder: page.folder, ...named }),
  );

  return vscode.Disposable.from(
    store.onDidTouch(folder => folder === page.folder && queue()),
    panel.onDidChangeViewState(() => {
      if (!panel.visible) sent = undefined;
    }),
    scanner,
    new vscode.Disposable(() => clearTimeout(again)),
  );
}

function joined(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
