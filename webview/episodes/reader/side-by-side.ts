// Shows episodes side by side with their differences marked: the members of a prompt group, or episodes of one prompt
// from two training steps.
import { html, nothing, type TemplateResult } from 'lit';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import type { Episode } from '../../../extension/run-data/episode';
import { button } from '../../components/controls';
import { notice } from '../../components/notice';
import { compareGrid, type GridColumn } from './compare-grid';
import type { EpisodesActions } from '../actions';
import { occurrenceName } from './over-training';
import type { PromptHistory, Subject } from './reader-subject';
import { timelineView } from './timeline';
import type { TurnOptions } from './turn-options';

/**
 * Renders the members of a group side by side. `episodes[i]` is the episode of `members[i]`; it is null if it no longer
 * exists.
 */
export function groupView(
  { row: current, members }: Subject,
  episodes: readonly (Episode | null)[],
  options: TurnOptions,
  bar: TemplateResult | typeof nothing,
  actions: EpisodesActions,
): TemplateResult {
  const { group_id, step, mode, tag, member } = current;
  const columns = episodes.flatMap((episode, i): GridColumn[] =>
    episode ? [{ episode, title: `member ${members[i].member}`, current: members[i].id === current.id }] : [],
  );
  const reference = Math.max(
    0,
    columns.findIndex(column => column.current),
  );
  const solved = columns.filter(({ episode }) => episode.success).length;
  const judged = columns.some(({ episode }) => episode.success !== null);
  const facts = `${judged ? `${solved}/${columns.length} solved · ` : ''}differences from member ${member} are highlighted`;
  return html`<article
    class="compared"
    style="--columns:${columns.length}"
    aria-label="Group ${group_id} of step ${step}"
  >
    ${viewHead(`Group ${group_id} · ${mode === 'val' ? 'validation' : 'step'} ${step}`, tag, facts)} ${bar}
    ${compareGrid(columns, reference, options, actions.openId)}
  </article>`;
}

/**
 * Renders an episode next to another episode of the same prompt. `other` is null if no earlier step has episodes of the
 * prompt.
 */
export function trainingView(
  row: EpisodeRow,
  episode: Episode,
  other: Episode | null,
  history: PromptHistory,
  options: TurnOptions,
  actions: EpisodesActions,
): TemplateResult {
  const title = `Prompt of seed ${episode.seed} over training`;
  if (history.all.length < 2)
    return html`<article class="compared">
      ${viewHead(title, row.tag, '')} ${onceNotice(row, history.hasValidation, actions)}
    </article>`;
  const now = { episode, title: occurrenceName(row), current: true };
  const columns = other ? [{ episode: other, title: occurrenceName(other), current: false }, now] : [now];
  const way = (against: PromptHistory['against'], label: string): TemplateResult =>
    button({ label, pressed: history.against === against, onClick: () => actions.compareWith(against) });
  return html`<article class="compared" style="--columns:${columns.length}" aria-label=${title}>
    ${viewHead(title, row.tag, '[ ] previous or next occurrence, j/k next or previous member')}
    ${timelineView(history, actions)}
    <div class="against">
      <span class="muted">compare with</span>${way('first', 'First occurrence')}${way('before', 'Previous occurrence')}
    </div>
    ${compareGrid(columns, 0, options, actions.openId)}
  </article>`;
}

function onceNotice(row: EpisodeRow, hasValidation: boolean, { mode }: EpisodesActions): TemplateResult {
  return notice({
    kind: 'empty',
    title: 'Nothing to compare yet',
    text: `This prompt appears only at ${occurrenceName(row)}.${hasValidation ? ' Validation uses the same prompts each time.' : ''}`,
    action: hasValidation ? { label: 'Show validation episodes', run: () => mode('val') } : undefined,
  });
}

function viewHead(title: string, tag: string, facts: string): TemplateResult {
  return html`<header class="episode-head">
    <div class="episode-title"><h2>${title}</h2><span class="tag">${tag}</span></div>
    ${facts === '' ? nothing : html`<p class="muted">${facts}</p>`}
  </header>`;
}
