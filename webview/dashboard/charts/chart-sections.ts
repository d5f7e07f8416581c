// The dashboard's body: collapsible groups of charts, and the run's events below.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { repeat } from 'lit/directives/repeat.js';
import { notice } from '../../components/notice';
import { pinnedGroup, type ShownGroup } from './arrangement';
import type { ChartSpec } from '../../../extension/run-data/charts/catalogue';
import type { ChartTools } from './chart-element';
import type { ChartContext } from './chart-context';
import type { DashboardActions } from '../actions';
import { eventList } from '../run/event-list';
import './metric-chart';
import './scatter-chart';
import '../scores/score-chart';
import { foundGroups, searchedText, type DashboardState } from '../state';

/** Inputs of all charts. */
export interface Charts {
  readonly groups: readonly ShownGroup[];
  readonly context: ChartContext;
  readonly tools: ChartTools;
}

export type SectionActions = Pick<DashboardActions, 'fold' | 'change'>;

/** Renders the groups of charts. During a search, only matching charts are shown and all groups are expanded. */
export function chartSections(state: DashboardState, charts: Charts, actions: SectionActions): TemplateResult {
  const search = searchedText(state);
  const groups = foundGroups(charts.groups, search);
  const none = { title: 'No matching metrics', text: `No metric of this run matches “${search}”.` };
  return html`${repeat(
    groups,
    group => group.id,
    group => {
      const isOpen = search !== '' || group.id === pinnedGroup || state.settings.open.includes(group.id);
      return chartSection(group, isOpen, state, charts, actions);
    },
  )}${groups.length === 0 ? notice({ kind: 'empty', ...none }) : nothing}`;
}

/** Renders the collapsible section with the list of events. */
export function eventSection(
  { events, opened, settings }: DashboardState,
  fold: (group: string) => void,
): TemplateResult {
  const isOpen = settings.open.includes('events');
  return html`<section class="group" data-group="events" ?hidden=${events.length === 0}>
    <h2 class="group-title">${foldButton('Events', events.length, isOpen, () => fold('events'))}</h2>
    <div class="events" ?hidden=${!isOpen}>
      ${isOpen ? guard([events, opened], () => eventList(events, opened)) : nothing}
    </div>
  </section>`;
}

/** Renders a group. The charts of a collapsed group are not in the DOM, so they request and draw nothing. */
function chartSection(
  { id, title, charts: specs, hidden }: ShownGroup,
  isOpen: boolean,
  state: DashboardState,
  charts: Charts,
  { fold, change }: SectionActions,
): TemplateResult {
  const heading =
    id === pinnedGroup
      ? html`<h2 class="visually-hidden">${title}</h2>`
      : html`<h2 class="group-title"
          >${foldButton(title, specs.length, isOpen, () => fold(id))}${isOpen ? nothing : contents(specs)}</h2
        >`;
  const cards = (): unknown =>
    repeat(
      specs,
      spec => spec.id,
      spec => chart(spec, id === pinnedGroup, state, charts),
    );
  const isAll = state.settings.redundant;
  const isToggleShown = isOpen && searchedText(state) === '' && id !== pinnedGroup && (hidden.length > 0 || isAll);
  const toggle = html`<button class="plain redundant" type="button" @click=${() => change({ redundant: !isAll })}
    >${
      isAll
        ? 'Hide constant and duplicate metrics'
        : `Show ${hidden.length} constant or duplicate ${hidden.length === 1 ? 'metric' : 'metrics'}`
    }</button
  >`;
  return html`<section class="group" data-group=${id}>
    ${heading} ${isOpen ? html`<div class="charts">${cards()}</div>` : nothing} ${isToggleShown ? toggle : nothing}
  </section>`;
}

/** Renders the titles of a collapsed group's charts; the page cuts them off at its width. */
const contents = (specs: readonly ChartSpec[]): TemplateResult =>
  html`<span class="group-contents" aria-hidden="true">${specs.map(({ title }) => title).join(' · ')}</span>`;

const foldButton = (title: string, count: number, isOpen: boolean, fold: () => void): TemplateResult =>
  html`<button class="plain fold" type="button" aria-expanded=${String(isOpen)} @click=${fold}
    >${title} <span class="count">(${count})</span></button
  >`;

function chart(
  spec: ChartSpec,
  isPinned: boolean,
  { settings, hovered, full: filling, tables }: DashboardState,
  { context, tools }: Charts,
): TemplateResult {
  const { id } = spec;
  const large = settings.enlarged.includes(id);
  const full = filling === id;
  const pinned = isPinned || (settings.pinned ?? []).includes(id);
  const table = tables[id] ?? null;
  if (spec.scores)
    return html`<score-chart
      .tools=${tools}
      .context=${context}
      .hovered=${hovered}
      .large=${large}
      .full=${full}
      .pinned=${pinned}
      .table=${table}
    ></score-chart>`;
  if (spec.against !== undefined)
    return html`<scatter-chart
      .tools=${tools}
      .spec=${spec}
      .context=${context}
      .hovered=${hovered}
      .large=${large}
      .full=${full}
      .pinned=${pinned}
      .table=${table}
    ></scatter-chart>`;
  return html`<metric-chart
    .tools=${tools}
    .spec=${spec}
    .context=${context}
    .hovered=${hovered}
    .large=${large}
    .full=${full}
    .log=${settings.log.includes(id)}
    .clipped=${settings.clipped.includes(id)}
    .limits=${settings.limits[id] ?? null}
    .pinned=${pinned}
    .table=${table}
  ></metric-chart>`;
}
