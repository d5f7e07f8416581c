// The bar above the timeline: the run, buttons to move between the overview and the steps, search, zoom, and the
// export.
import { html, nothing, type TemplateResult } from 'lit';
import { button, textField } from '../components/controls';
import { runTitle } from '../components/toolbar';
import type { TimelineActions } from './actions';
import { hasEpisodes, neighbour, newestStep, type TimelineState } from './state';
import type { TimelineFacts } from '../../extension/protocol/timeline-page';

export function topBar(facts: TimelineFacts, state: TimelineState, actions: TimelineActions): TemplateResult {
  return html`<header class="timeline-bar">
    <div class="bar-row">
      ${runTitle(facts.run, facts.run.id)}
      <div class="buttons">
        ${button({ label: 'Dashboard', onClick: () => actions.command('dashboard') })}
        ${button({ label: 'Episodes', onClick: () => actions.command('episodes') })}
      </div>
    </div>
    ${tools(facts, state, actions)}
  </header>`;
}

function tools(facts: TimelineFacts, state: TimelineState, actions: TimelineActions): TemplateResult {
  const { settings, open, search } = state;
  const inStep = settings.step !== null;
  return html`<div class="bar-row">
    <div class="crumbs" role="group" aria-label="Steps">
      <button
        class="choice"
        type="button"
        aria-pressed=${String(!inStep)}
        title="All steps ( Escape )"
        @click=${() => actions.open(null)}
        >Overview</button
      >
      ${button({
        label: 'Previous step',
        icon: 'left',
        iconOnly: true,
        title: 'Previous step ( , )',
        disabled: neighbour(state, -1) === null ? 'soft' : false,
        onClick: () => actions.move(-1),
      })}
      <span class="step-name">${stepName(state)}</span>
      ${button({
        label: 'Next step',
        icon: 'right',
        iconOnly: true,
        title: 'Next step ( . )',
        disabled: neighbour(state, 1) === null ? 'soft' : false,
        onClick: () => actions.move(1),
      })}
      ${button({
        label: 'Follow',
        title: 'Always show the newest step ( f )',
        primary: settings.follow,
        pressed: settings.follow,
        disabled: newestStep(state) === null ? 'soft' : false,
        onClick: () => actions.follow(!settings.follow),
      })}
    </div>
    <div class="tools">
      ${inStep ? stepSearch(state, search, actions) : nothing}
      ${button({ label: '−', title: 'Zoom out ( s or − )', onClick: () => actions.zoomBy(1.6) })}
      ${button({ label: '+', title: 'Zoom in ( w or + )', onClick: () => actions.zoomBy(1 / 1.6) })}
      ${button({ label: 'All', title: 'Show everything ( 0 )', onClick: actions.showAll })}
      ${button({
        label: 'Episode rows',
        hidden: !open || !hasEpisodes(open),
        title: 'Show a row for each episode ( e )',
        pressed: settings.episodes,
        onClick: () => actions.unfold(!settings.episodes),
      })}
      ${button({
        label: 'Table view',
        icon: 'table',
        iconOnly: true,
        pressed: settings.table,
        onClick: () => actions.showTable(!settings.table),
      })}
      ${button({
        label: 'Export as Chrome trace',
        icon: 'export',
        iconOnly: true,
        title: 'Export what is shown as a Chrome trace, which Perfetto opens',
        disabled: facts.kept.length === 0 ? 'soft' : false,
        onClick: actions.exportTrace,
      })}
    </div>
  </div>`;
}

function stepSearch({ open }: TimelineState, search: string, actions: TimelineActions): TemplateResult {
  const matches = open?.matches ?? null;
  const at = matches && open && open.selected !== null ? matches.indexOf(open.selected) + 1 : 0;
  const count = matches ? `${at > 0 ? `${at} of ` : ''}${matches.length}` : '';
  return html`${textField({
      label: 'Search spans',
      value: search,
      placeholder: 'Search spans',
      class: 'search',
      title: 'Episode, call or lane ( / ); Enter selects the next match',
      onInput: actions.search,
      onEnter: () => actions.nextMatch(1),
    })}<span class="muted match-count" role="status">${count}</span>`;
}

function stepName({ open, settings }: TimelineState): string {
  if (settings.step === null) return '';
  if (settings.step !== 'current') return `Step ${settings.step}`;
  return open ? `Step ${open.timeline.step} (in progress)` : 'Step in progress';
}
