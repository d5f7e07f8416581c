// Host side of the Live page: while the page is visible, the host requests token reports from the run's trainer and
// forwards them to the page. If the trainer restarts, the host requests the reports again. While the page is hidden,
// the trainer sends no reports.
import * as vscode from 'vscode';
import { liveCommand, liveEpisode, liveReady, liveRun, liveTags, liveTokens } from '../../protocol/live-page';
import { replaceTail } from '../../common/lists';
import type { WatchChoice, WatchedEpisode } from '../../protocol/trainer-link';
import { storedPictureUrl } from '../../node/episode-pictures';
import { registerActions } from '../command';
import type { Host } from '../host-services';
import { PagePanels, type OpenPage, type PageKind } from './page-panels';
import { isActive } from '../runs/run-format';
import type { RunArgument } from '../runs/run-picker';
import type { RunStore } from '../runs/run-store';
import { WatchedPictures } from './watched-pictures';
import type { EpisodeWatcher, TrainerClient } from '../processes/trainer-client';

/** Actions of the page's buttons, implemented by the commands. */
type LiveActions = Record<'episodes' | 'pause' | 'resume' | 'log', (folder: string) => void>;

export function registerLive(context: vscode.ExtensionContext, host: Host): void {
  const { store, picker } = host;
  const call = (command: string) => (folder: string) => void vscode.commands.executeCommand(command, folder);
  const actions: LiveActions = {
    episodes: call('ragen.openEpisodes'),
    pause: call('ragen.pause'),
    resume: call('ragen.resume'),
    log: call('ragen.showLog'),
  };
  const lives = new PagePanels(liveKind(store, actions), context.extensionUri, store);
  const command = registerActions(host, {
    'ragen.watchLive': async argument => {
      const run = await picker.pick(argument as RunArgument, isActive, vscode.l10n.t('No run is running.'));
      if (run) lives.show(run, vscode.ViewColumn.Active);
    },
  });
  context.subscriptions.push(lives, command);
}

function liveKind(store: RunStore, actions: LiveActions): PageKind {
  return {
    viewType: 'ragen.live',
    bundle: 'live',
    title: run => vscode.l10n.t('{0} · Live', run),
    icon: 'live.svg',
    serve: page => serveLive(page, store, actions),
  };
}

function serveLive(page: OpenPage, store: RunStore, actions: LiveActions): vscode.Disposable {
  const { messenger, panel, folder } = page;
  let tags: string[] = [];
  let episode: WatchedEpisode | null = null;
  let choice: WatchChoice | undefined; // undefined until the page has sent `ready`
  let trainer: TrainerClient | undefined;
  let shown = '';
  const pictures = new WatchedPictures(
    name => storedPictureUrl(folder, name),
    () => sendEpisode(),
  );
  const sendEpisode = () =>
    messenger.sendNotification(liveEpisode, page.page, { episode: episode && pictures.shownIn(episode) });

  const watcher: EpisodeWatcher = {
    tags(update) {
      tags = update;
      messenger.sendNotification(liveTags, page.page, { tags });
    },
    episode(update) {
      episode = update;
      sendEpisode();
    },
    tokens(update) {
      const newest = episode?.id === update.id ? episode.turns.at(-1) : undefined;
      // The host keeps a copy of the complete turn, so that it can send the turn to a reloaded page.
      if (newest?.turn === update.turn) replaceTail(newest.tokens, update.at, update.tokens);
      messenger.sendNotification(liveTokens, page.page, update);
    },
  };
  /** Subscribes to the run's trainer. The store replaces the client when the trainer restarts. */
  const follow = () => {
    const now = choice && panel.visible ? store.get(folder)?.trainer : undefined;
    if (now === trainer) return;
    trainer?.unwatch(watcher);
    trainer = now;
    if (!trainer) episode = null;
    if (trainer && choice) trainer.watch(choice, watcher);
  };
  messenger.onRequest(liveReady, request => {
    const changed = request.tag !== choice?.tag || request.group !== choice?.group;
    choice = request;
    if (changed && trainer) trainer.watch(request, watcher);
    follow();
    const { summary: run } = page.run();
    shown = JSON.stringify(run);
    return { run, tags, choice, episode: episode && pictures.shownIn(episode) };
  });
  messenger.onNotification(liveCommand, ({ command }) => actions[command](folder));

  const update = () => {
    follow();
    const run = store.get(folder)?.summary;
    if (!run || !choice || !panel.visible || JSON.stringify(run) === shown) return;
    shown = JSON.stringify(run);
    messenger.sendNotification(liveRun, page.page, { run });
  };
  return vscode.Disposable.from(store.onDidChange(update), panel.onDidChangeViewState(update), {
    dispose: () => trainer?.unwatch(watcher),
  });
}
