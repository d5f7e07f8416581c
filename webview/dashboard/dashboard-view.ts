// Renders the Dashboard: a bar, and below it the charts, a table of all metrics, or the reason why there are no metrics
// yet.
import type { DashboardActions } from './actions';
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { RunSummary } from '../../extension/protocol/page-state';
import { leftOutNote } from '../components/left-out';
import { notice, skeleton } from '../components/notice';
import { chartSections, eventSection, type Charts } from './charts/chart-sections';
import { emptyView } from './empty-view';
import { endingBanner } from './run/ending-banner';
import { evaluationTable } from './run/evaluation-table';
import { pickedRow } from './run/picked-row';
import { runTable } from './run/run-table';
import { isTable, searchedText, shownEnding, type DashboardState } from './state';
import { topBar } from './top-bar';

/** Renders the Dashboard. `charts` is null before the first snapshot. */
export function dashboardView(state: DashboardState, charts: Charts | null, actions: DashboardActions): TemplateResult {
  const { connection, run, refusal } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'The run could not be read',
      text: connection.failed,
      action: { label: 'Try again', run: actions.connect },
    });
  if (!run || !charts) return skeleton('skeleton-charts', 8, 'Loading the run');
  const ending = shownEnding(state);
  const close = { label: 'Close', run: actions.dismiss };
  return html`${topBar(run, state, actions)}
    <main class="dashboard-body">
      ${
        refusal === null
          ? nothing
          : notice({ kind: 'error', title: 'The file was not written', text: refusal, action: close })
      }
      ${leftOutNote(run)}
      ${ending ? endingBanner(ending, run.trainer !== undefined, actions.command, actions.closeEnding) : nothing}
      ${run.status.episodes ? nothing : pickedRow(state.picked, actions.openEpisode)}
      ${body(run, state, charts, actions)}
    </main>
    <p class="visually-hidden" aria-live="polite">${state.announcement}</p>`;
}

function body(run: RunSummary, state: DashboardState, charts: Charts, actions: DashboardActions): TemplateResult {
  if (state.series.rows === 0) return emptyView(run, () => actions.command('log'));
  const events = eventSection(state, actions.fold);
  if (!isTable(state)) return html`${chartSections(state, charts, actions)}${events}`;
  return html`${run.status.episodes ? evaluation(charts) : allMetrics(state, charts, actions)}${events}`;
}

const evaluation = ({ groups, context }: Charts): TemplateResult =>
  html`<div class="table-scroll" tabindex="0">
    ${guard([groups, context], () => evaluationTable(groups, context.store, context.meaning))}
  </div>`;

function allMetrics(state: DashboardState, { groups, context }: Charts, actions: DashboardActions): TemplateResult {
  const { sort } = state.settings;
  const search = searchedText(state);
  const { meaning, store } = context;
  return html`<div class="table-scroll run-table-scroll" tabindex="0">
    ${guard([groups, context, search, sort], () =>
      runTable(groups, store, { search, meaning, sort, onSort: next => actions.change({ sort: next }) }),
    )}
  </div>`;
}
