// The Episodes page's side in the host: the steps that have episodes, one step's rows, and whole episodes one at a time, each
// read from the run folder when it is asked for.
import * as vscode from 'vscode';
import { episodeOpen, episodesGrew, episodesReady, type EpisodesSnapshot } from '../protocol/pages';
import type { OpenPage, PageKind } from './page-panels';
import type { EpisodeStep, RunReader } from './run-reader';
import type { RunStore } from './run-store';

export function episodesKind(store: RunStore): PageKind {
  return {
    viewType: 'ragen.episodes',
    bundle: 'episodes',
    title: run => vscode.l10n.t('{0} · Episodes', run),
    icon: 'episodes.svg',
    serve: page => serveEpisodes(page, store),
  };
}

function serveEpisodes(page: OpenPage, store: RunStore): vscode.Disposable {
  let sent: string | undefined; // steps and run as the page has them; undefined until it has asked
  const { messenger, panel } = page;

  messenger.onRequest(episodesReady, async asked => {
    const { reader, summary: run } = page.run();
    const snapshot = { run, ...(await chosen(reader, asked ?? null)) };
    sent = textOf(snapshot);
    return snapshot;
  });
  messenger.onRequest(episodeOpen, ({ step, mode, id }) => page.run().reader.episode({ step, mode }, id));

  const send = async () => {
    if (sent === undefined || !panel.visible) return;
    const run = store.get(page.folder);
    if (!run) return;
    const grown = { run: run.summary, steps: await run.reader.episodeSteps() };
    if (sent === undefined || textOf(grown) === sent) return;
    sent = textOf(grown);
    messenger.sendNotification(episodesGrew, page.page, grown);
  };
  return vscode.Disposable.from(
    store.onDidTouch(folder => folder === page.folder && void send()),
    panel.onDidChangeViewState(() => {
      if (!panel.visible) sent = undefined;
    }),
  );
}

/** The steps and the rows of the asked step, the newest one where none is asked or the asked one has gone. */
async function chosen(reader: RunReader, asked: EpisodeStep | null): Promise<Omit<EpisodesSnapshot, 'run'>> {
  const steps = await reader.episodeSteps();
  const selected = steps.find(({ step, mode }) => step === asked?.step && mode === asked.mode) ?? steps.at(-1) ?? null;
  return { steps, selected, rows: selected ? await reader.episodeRows(selected) : [] };
}

const textOf = ({ run, steps }: Pick<EpisodesSnapshot, 'run' | 'steps'>): string =>
  JSON.stringify([run.live, run.status.state, steps]);
