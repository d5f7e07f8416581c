// Host side of the Episodes page: sends all episodes of the run as columns, and new rows while the run plays more
// episodes. On request, sends one complete episode or the results of a text search.
import { join } from 'node:path';
import * as vscode from 'vscode';
import {
  episodeHeat,
  episodeHeatEnd,
  episodeHeatPhase,
  episodeOpen,
  episodesDataSet,
  episodesExport,
  episodesFound,
  episodesGrew,
  episodesReady,
  episodesSearch,
  episodesSearchEnd,
  episodesShow,
  episodeTrace,
} from '../../protocol/episodes-page';
import { EpisodeIndexReader } from '../run-files/episodes/episode-index-reader';
import { withPictures } from '../../node/episode-pictures';
import { ThreadScanner } from '../run-files/episodes/thread-scanner';
import type { Inspections } from '../processes/inspection-process';
import type { EpisodeTargets } from './episode-targets';
import type { OpenPage, PageKind } from './page-panels';
import { saveExport } from './save-export';
import type { RunStore } from '../runs/run-store';

/** What the page needs besides the run. */
export interface EpisodesServices {
  /** The extension's folder. */
  extensionPath: string;
  /** The extension's storage folder for the workspace; null without storage. */
  storage: string | null;
  /** Computes heat maps. */
  inspections: Pick<Inspections, 'heatMaps'>;
  /** Episodes at which pages are to open. */
  targets: EpisodeTargets;
}

export function episodesKind(store: RunStore, services: EpisodesServices): PageKind {
  return {
    viewType: 'ragen.episodes',
    bundle: 'episodes',
    title: run => vscode.l10n.t('{0} · Episodes', run),
    icon: 'episodes.svg',
    serve: page => serveEpisodes(page, store, services),
  };
}

/**
 * Intervals in milliseconds. `updateMs` is the time between two update messages during a scan of files. `young` is the
 * delay until the next attempt if a file changed too recently to be scanned.
 */
const pace = { updateMs: 250, young: 1000 };

function serveEpisodes(
  page: OpenPage,
  store: RunStore,
  { extensionPath, storage, targets, inspections }: EpisodesServices,
): vscode.Disposable {
  const { messenger, panel } = page;
  const scanner = new ThreadScanner(join(extensionPath, 'dist', 'episode-worker.cjs'));
  const index = new EpisodeIndexReader(page.folder, storage, scanner);
  /** The state that was sent to the page; undefined until the page has sent `ready`. */
  let sent: { epoch: number; rows: number; rest: string } | undefined;
  let sentAt = 0;
  let again: NodeJS.Timeout | undefined;

  const snapshot = () => {
    const { summary: run } = page.run();
    return {
      run,
      epoch: index.epoch,
      read: index.read,
      rest: JSON.stringify([run.live, run.status.state, run.status.step > 0, index.read]),
    };
  };
  const sendUpdate = () => {
    if (!sent || !panel.visible || !store.get(page.folder)) return;
    const { run, epoch, read, rest } = snapshot();
    const from = sent.epoch === epoch ? sent.rows : 0;
    if (sent.epoch === epoch && from === index.table.rows && rest === sent.rest) return;
    const rows = index.table.slice(from);
    sent = { epoch, rows: index.table.rows, rest };
    messenger.sendNotification(episodesGrew, page.page, { run, epoch, read, from, rows });
  };
  const update = async () => {
    const young = await index.update(() => {
      if (performance.now() - sentAt < pace.updateMs) return;
      sentAt = performance.now();
      sendUpdate();
    });
    sendUpdate();
    clearTimeout(again);
    if (young) again = setTimeout(queue, pace.young);
  };
  const queue = () => {
    // An error is ignored: the folder was deleted or is being written. The next touch event starts another update.
    if (sent && panel.visible) update().catch(() => undefined);
  };

  const showTarget = () => {
    const target = sent && targets.take(page.folder);
    if (target) messenger.sendNotification(episodesShow, page.page, target);
  };

  // Reads new episodes. The promise resolves when the indexed episodes are read. Episodes of files without an index are
  // sent later, after each scan.
  const read = () =>
    new Promise<void>((resolve, reject) => {
      index.update(resolve).then(young => {
        if (young) again = setTimeout(queue, pace.young);
        resolve();
        sendUpdate();
      }, reject);
    });
  let begun: Promise<void> | undefined = read(); // starts while the page is loading
  begun.catch(() => undefined); // the error is reported when the page sends its request
  messenger.onRequest(episodesReady, async () => {
    const first = begun ?? read();
    begun = undefined;
    await first;
    const { rest, ...about } = snapshot();
    sent = { epoch: index.epoch, rows: index.table.rows, rest };
    setImmediate(showTarget); // after the answer
    queue(); // sends changes that occurred while the page was loading
    return { ...about, rows: index.table.slice(0) };
  });
  messenger.onRequest(episodeOpen, async ref => {
    const episode = await index.episode(ref);
    return episode && withPictures(page.folder, episode);
  });
  let heating: AbortController | undefined;
  messenger.onRequest(episodeHeat, async asked => {
    heating?.abort();
    const { signal } = (heating = new AbortController());
    const onPhase = (phase: string) => messenger.sendNotification(episodeHeatPhase, page.page, { phase });
    try {
      return await inspections.heatMaps({ folder: page.folder, ...asked }, { signal, onPhase });
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  });
  messenger.onNotification(episodeHeatEnd, () => heating?.abort());
  messenger.onNotification(
    episodesDataSet,
    ({ filter }) => void vscode.commands.executeCommand('ragen.exportDataSet', { folder: page.folder, filter }),
  );
  messenger.onRequest(episodesExport, movie => saveExport(page.folder, movie, movie.bytes));
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
    targets.onDidAdd(folder => folder === page.folder && panel.visible && showTarget()),
    panel.onDidChangeViewState(() => {
      if (!panel.visible) sent = undefined;
    }),
    scanner,
    new vscode.Disposable(() => heating?.abort()),
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
