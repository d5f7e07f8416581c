// `RAGEN: Search Episodes`: searches the texts of the episodes of all runs, or of the selected runs, while the user
// types. Hits are listed as they are found; a changed text or a closed list ends the search. A chosen hit opens the
// Episodes page at the episode and turn.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { searchEpisodes, type EpisodeHit } from '../../../node/search-episodes';
import { messageOf, type Command } from '../../command';
import type { Host } from '../../host-services';
import { plain } from '../../plain-text';
import { anyRun, noRuns } from './run-checks';
import type { Run } from '../run-store';
import { UserError } from '../../../common/user-error';
import { createQuickPick } from '../../questions';

/** `typingMs`: delay between the last key and the search. `listMs`: time between two updates of the list. */
const [typingMs, listMs] = [250, 150];
/** Number of hits that are listed; more of them would not be read. */
const most = 300;

type Item = vscode.QuickPickItem & { hit: EpisodeHit };

export const searchCommand: Command = host => async (argument, all) => {
  await host.store.scanned;
  const selected = all.length > 0 ? await host.picker.pickMany(argument, all, anyRun, noRuns()) : host.store.runs;
  if (selected.length === 0) throw new UserError(noRuns());
  const hit = await askForHit(selected);
  if (hit) await openHit(host, hit);
};

async function openHit(host: Host, { folder, id, turn }: EpisodeHit): Promise<void> {
  const run = await host.store.find(folder);
  if (!run) throw new UserError(vscode.l10n.t('Run {0} no longer exists: search again.', basename(folder)));
  host.episodeTargets.set(folder, { id, turn });
  host.episodes.show(run, vscode.ViewColumn.Active);
}

/** Lets the user type a text and choose a hit. Resolves with undefined if the user cancels. */
function askForHit(runs: readonly Run[]): Promise<EpisodeHit | undefined> {
  const names = new Map(runs.map(({ folder, summary }) => [folder, summary.name]));
  const picker = createQuickPick<Item>();
  const title =
    runs.length === 1
      ? vscode.l10n.t('Search Episodes of {0}', runs[0].summary.name)
      : vscode.l10n.t('Search Episodes of {0} Runs', runs.length);
  picker.title = title;
  picker.placeholder = vscode.l10n.t('Text in states, answers, final states or errors');
  let current = new AbortController();
  let typing: NodeJS.Timeout | undefined;

  const search = async (text: string, { signal }: AbortController): Promise<void> => {
    const hits: EpisodeHit[] = [];
    let listedAt = 0;
    const list = (share: number | null) => {
      if (signal.aborted) return;
      listedAt = performance.now();
      picker.items = hits.map(hit => itemOf(hit, names.get(hit.folder) ?? basename(hit.folder)));
      const count = vscode.l10n.t('{0} episodes', hits.length >= most ? `${most}+` : hits.length);
      picker.title =
        share === null
          ? `${title} · ${count}`
          : `${title} · ${count} · ${vscode.l10n.t('searched {0} %', Math.floor(share * 100))}`;
    };
    let searched = 0;
    const progress = (share: number) => {
      searched = share;
      if (performance.now() - listedAt > listMs) list(share);
    };
    for await (const hit of searchEpisodes([...names.keys()], text, { signal, progress })) {
      hits.push(hit);
      if (hits.length >= most) break;
      if (performance.now() - listedAt > listMs) list(searched);
    }
    list(null);
  };

  picker.onDidChangeValue(text => {
    current.abort();
    clearTimeout(typing);
    const own = (current = new AbortController());
    picker.items = [];
    picker.title = title;
    picker.busy = text.trim() !== '';
    if (text.trim() === '') return;
    typing = setTimeout(() => {
      search(text.trim(), own)
        .catch((error: unknown) => (picker.title = `${title} · ${messageOf(error)}`))
        .finally(() => {
          if (own === current) picker.busy = false;
        });
    }, typingMs);
  });
  return new Promise(resolve => {
    picker.onDidAccept(() => {
      const [item] = picker.selectedItems;
      if (item) {
        resolve(item.hit);
        picker.hide();
      }
    });
    picker.onDidHide(() => {
      clearTimeout(typing);
      current.abort();
      resolve(undefined);
      picker.dispose();
    });
    picker.show();
  });
}

function itemOf(hit: EpisodeHit, name: string): Item {
  const { step, mode, id, tag, turn, part, excerpt } = hit;
  const where = turn === null ? part : vscode.l10n.t('turn {0}, {1}', turn, part);
  const at = mode === 'val' ? vscode.l10n.t('validation {0}', step) : vscode.l10n.t('step {0}', step);
  return {
    label: plain(excerpt),
    description: plain(where),
    detail: plain([name, at, tag, id].join(' · ')),
    alwaysShow: true, // the search has already filtered the items
    hit,
  };
}
