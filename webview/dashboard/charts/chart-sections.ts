// The dashboard's body: collapsible groups of charts, and the run's events below.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { repeat } from 'lit/directives/repeat.js';
import { notice } from '../../components/notice';
import { pinnedGroup } from './arrangement';
import type { ChartGroup, ChartSpec } from '../../charts/catalogue';
import type { ChartTools } from './chart-element';
import type { ChartContext } from './chart-context';
import { eventList } from '../run/event-list';
import './metric-chart';
import '../scores/score-chart';
import { foundGroups, searchedText, type DashboardState } from '../state';

/** Inputs of all charts. */
export interface Charts {
  readonly groups: readonly ChartGroup[];
  readonly context: ChartContext;
  readonly tools: ChartTools;
}

type Fold = (group: string) => void;

/** Renders the groups of charts. During a search, only matching charts are shown and all groups are expanded. */
export function chartSections(state: DashboardState, charts: Charts, fold: Fold): TemplateResult {
  const search = searchedText(state);
  const groups = foundGroups(charts.groups, search);
  const none = { title: 'No matching metrics', text: `No metric of this run matches “${search}”.` };
  return html`${repeat(
    groups,
    group => group.id,
    group => chartSection(group, search === '' && state.settings.folded.includes(group.id), state, charts, fold),
  )}${groups.length === 0 ? notice({ kind: 'empty', ...none }) : nothing}`;
}

/** Renders the collapsible section with the list of events. */
export function eventSection({ events, opened, settings }: DashboardState, fold: Fold): TemplateResult {
  const isOpen = !settings.folded.includes('events');
  return html`<section class="group" data-group="events" ?hidden=${events.length === 0}>
    <h2 class="group-title">${foldButton(`Events (${events.length})`, isOpen, () => fold('events'))}</h2>
    <div class="events" ?hidden=${!isOpen}>
      ${isOpen ? guard([events, opened], () => eventList(events, opened)) : nothing}
    </div>
  </section>`;
}

function chartSection(
  { id, title, charts: specs }: ChartGroup,
  isFolded: boolean,
  state: DashboardState,
  charts: Charts,
  fold: Fold,
): TemplateResult {
  const heading =
    id === pinnedGroup
      ? html`<h2 class="visually-hidden">${title}</h2>`
      : html`<h2 class="group-title">${foldButton(title, !isFolded, () => fold(id))}</h2>`;
  const cards = repeat(
    specs,
    spec => spec.id,
    spec => chart(spec, id === pinnedGroup, state, charts),
  );
  return html`<section class="group" data-group=${id}>
    ${heading}
    <div class="charts" ?hidden=${isFolded}>${cards}</div>
  </section>`;
}

const foldButton = (title: string, isOpen: boolean, fold: () => void): TemplateResult =>
  html`<button class="plain fold" type="button" aria-expanded=${String(isOpen)} @click=${fold}>${title}</button>`;

function chart(
  spec: ChartSpec,
  isPinned: boolean,
  { settings, hovered, tables }: DashboardState,
  { context, tools }: Charts,
): TemplateResult {
  const { id } = spec;
  const large = settings.enlarged.includes(id);
  const pinned = isPinned || (settings.pinned ?? []).includes(id);
  const table = tables[id] ?? null;
  if (spec.scores)
    return html`<score-chart
      .tools=${tools}
      .context=${context}
      .hovered=${hovered}
      .large=${large}
      .pinned=${pinned}
      .table=${table}
    ></score-chart>`;
  return html`<metric-chart
    .tools=${tools}
    .spec=${spec}
    .context=${context}
    .hovered=${hovered}
    .large=${large}
    .log=${settings.log.includes(id)}
    .pinned=${pinned}
    .table=${table}
  ></metric-chart>`;
}
