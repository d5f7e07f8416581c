// Renders the Episodes page: the list with its header on the left, the reader on the right. A narrow page shows either
// the list or the reader.
import type { EpisodesActions } from './actions';
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { notice, skeleton } from '../components/notice';
import '../components/virtual-list';
import { listHead } from './list/list-head';
import { renderItem } from './list/list-rows';
import type { ListItem } from './list/listing';
import { paneView } from './reader/reader-pane';
import { readerTools } from './reader/reader-tools';
import { sideBar } from './list/side-bar';
import { matchesNothing, type EpisodesState } from './state';

const rowHeight = 24;

export function episodesView(state: EpisodesState, actions: EpisodesActions): TemplateResult {
  const { connection, run, front } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'The episodes could not be read',
      text: connection.failed,
      action: { label: 'Try again', run: actions.load },
    });
  if (!run) return skeleton('skeleton-rows', 14, 'Loading the episodes');
  return html`<div class=${front === 'reader' ? 'episodes reading' : 'episodes'}>
    <aside class="side">${sideBar(run, state, actions)} ${listView(state, actions)}</aside>
    <div class="reader">
      ${readerTools(state, actions)}
      <main class=${state.settings.large ? 'episode-pane large' : 'episode-pane'} tabindex="-1"
        >${paneView(run, state, actions)}</main
      >
    </div>
  </div>`;
}

/** Renders the list with its column headers. If no episode matches the filter, a notice replaces the list. */
function listView(state: EpisodesState, actions: EpisodesActions): TemplateResult {
  const { matches, subject, settings } = state;
  const { sort } = settings;
  const isEmpty = matchesNothing(state);
  const empty = notice({
    kind: 'empty',
    title: 'No episode matches the filter',
    text: 'Change a term, or clear the filter.',
    action: { label: 'Clear the filter', run: () => actions.filter('') },
  });
  return html`<div class="list-heads">${guard([sort], () => listHead(sort, actions))}</div>
    ${isEmpty ? html`<div>${empty}</div>` : nothing}
    <virtual-list
      class="list"
      aria-label="Episodes"
      ?hidden=${isEmpty}
      .rowHeight=${rowHeight}
      .renderRow=${guard([sort], () => (item: ListItem) => renderItem(item, sort))}
      .source=${matches?.listing ?? noItems}
      .selected=${subject?.row.id ?? null}
      .onChoose=${(item: ListItem) => item.kind === 'episode' && actions.open(item.row)}
      .onTop=${actions.scrolled}
    ></virtual-list>`;
}

const noItems = { length: 0, at: () => null as never, find: () => -1, selectableFrom: () => -1 };
