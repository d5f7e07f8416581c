// Episodes side by side: the members of a prompt group, or a prompt at two times of the training, with differences
// marked.
import type { EpisodeRow } from '../../extension/run-data/episode-table';
import type { Episode } from '../../extension/run-data/episode';
import { h } from '../shared/dom';
import { notice } from '../shared/notices';
import type { Theme } from '../shared/theme';
import { button } from '../shared/toolkit';
import { compareGrid, type GridColumn } from './compare-grid';
import { occurrenceName, type Occurrence } from './over-training';
import type { EpisodesView } from './view';

/** Display options of episodes, and the action of a click on a header. */
export interface SideBySideOptions {
  theme: Theme;
  raw: boolean;
  tokens: boolean;
  choose(id: string): void;
}

/** The members of `current`'s group; `episodes` corresponds to `rows`, null for an episode that no longer exists. */
export function groupView(
  rows: readonly EpisodeRow[],
  episodes: readonly (Episode | null)[],
  current: EpisodeRow,
  options: SideBySideOptions,
): HTMLElement {
  const columns = episodes.flatMap((episode, i): GridColumn[] =>
    episode ? [{ episode, title: `member ${rows[i].member}`, current: rows[i].id === current.id }] : [],
  );
  const reference = Math.max(
    0,
    columns.findIndex(column => column.current),
  );
  const solved = columns.filter(({ episode }) => episode.success).length;
  return h(
    'article',
    {
      class: 'compared',
      style: `--columns:${columns.length}`,
      'aria-label': `Group ${current.group_id} of step ${current.step}`,
    },
    viewHead(
      `Group ${current.group_id} · ${current.mode === 'val' ? 'validation' : 'step'} ${current.step}`,
      current.tag,
      `${solved}/${columns.length} solved · differences from member ${current.member} are highlighted`,
    ),
    gridOf(columns, reference, options),
  );
}

/** A prompt over training: its occurrences, and the episode with which the current one is compared. */
export interface PromptHistory {
  all: readonly Occurrence[];
  against: EpisodesView['against'];
  /** The element that selects an occurrence. */
  timeline: HTMLElement;
  compareWith(against: EpisodesView['against']): void;
  /** Lists validation episodes, whose prompts recur; absent if there are none to list. */
  listValidation?(): void;
}

/** An episode next to another one of the same prompt; `other` is null for the first occurrence. */
export function trainingView(
  row: EpisodeRow,
  episode: Episode,
  other: Episode | null,
  { all, against, timeline, compareWith, listValidation }: PromptHistory,
  options: SideBySideOptions,
): HTMLElement {
  const title = `Prompt of seed ${episode.seed} over training`;
  if (all.length < 2) {
    const text = `This prompt appears only at ${occurrenceName(all[0])}.${listValidation ? ' Validation uses the same prompts each time.' : ''}`;
    const action = listValidation && { label: 'Show validation episodes', run: listValidation };
    return h(
      'article',
      { class: 'compared' },
      viewHead(title, row.tag, ''),
      notice({ kind: 'empty', title: 'Nothing to compare yet', text, action }),
    );
  }
  const now = { episode, title: occurrenceName(row), current: true };
  const columns = other ? [{ episode: other, title: occurrenceName(other), current: false }, now] : [now];
  const ways: [typeof against, string][] = [
    ['first', 'First occurrence'],
    ['before', 'Previous occurrence'],
  ];
  const choice = ways.map(([way, label]) =>
    button({ label, pressed: against === way, onClick: () => compareWith(way) }),
  );
  return h(
    'article',
    { class: 'compared', style: `--columns:${columns.length}`, 'aria-label': title },
    viewHead(title, row.tag, `[ ] previous or next occurrence, j/k next or previous member`),
    timeline,
    h('div', { class: 'against' }, h('span', { class: 'muted' }, 'compare with'), ...choice),
    gridOf(columns, 0, options),
  );
}

const gridOf = (columns: GridColumn[], reference: number, { choose, ...options }: SideBySideOptions): HTMLElement =>
  compareGrid(columns, { ...options, reference, choose: column => choose(columns[column].episode.id) });

function viewHead(title: string, tag: string, facts: string): HTMLElement {
  return h(
    'header',
    { class: 'episode-head' },
    h('div', { class: 'episode-title' }, h('h2', {}, title), h('span', { class: 'tag' }, tag)),
    facts !== '' && h('p', { class: 'muted' }, facts),
  );
}
