// The dashboard's body: collapsible groups of charts, and the run's events below. Notifies charts of their visibility.
// Existing elements stay in place, so that focus and scroll position are kept.
import type { RunEvent } from '../../extension/run-data/run-events';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { notice } from '../shared/notices';
import { pinnedGroup } from './arrangement';
import type { ChartGroup, ChartSpec } from './catalogue';
import type { ChartCard } from './chart-card';
import { eventList } from './event-list';
import type { ScoreCard } from './score-card';
import type { DashboardView } from './view';

export type Card = ChartCard | ScoreCard;

/** A run's events and the opened one. */
export interface ShownEvents {
  events: readonly RunEvent[];
  opened: RunEvent | null;
}

export class ChartSections {
  readonly element = h('main', { class: 'dashboard-body' });
  private readonly byId = new Map<string, Card>();
  private readonly sections = new Map<string, HTMLElement>();
  private readonly observer = new IntersectionObserver(
    entries => {
      for (const { target, isIntersecting } of entries)
        this.byId.get((target as HTMLElement).dataset.chart ?? '')?.setVisible(isIntersecting);
    },
    { rootMargin: '100px' },
  );

  constructor(
    private readonly make: (spec: ChartSpec) => Card,
    private readonly toggleFold: (group: string) => void,
  ) {}

  get cards(): Iterable<Card> {
    return this.byId.values();
  }

  card(id: string): Card | undefined {
    return this.byId.get(id);
  }

  /**
   * Updates charts and sections to the arrangement; with a `search` (lower case), shows only matching charts, with all
   * groups expanded.
   */
  layOut(groups: readonly ChartGroup[], view: DashboardView, search: string, events: ShownEvents): void {
    const wanted = new Set<string>();
    const shown: HTMLElement[] = [];
    for (const group of groups) {
      for (const chart of group.charts) {
        wanted.add(chart.id);
        this.settle(chart, group, view);
      }
      const section = this.section(group.id, group.title, group.id !== pinnedGroup);
      const matching = group.charts
        .map(chart => this.byId.get(chart.id)!)
        .filter(card => search === '' || card.matches(search));
      section.hidden = matching.length === 0;
      const isFolded = view.folded.includes(group.id) && search === '';
      setAttribute(
        section.querySelector('button.fold') ?? section,
        'aria-expanded',
        group.id === pinnedGroup ? null : String(!isFolded),
      );
      const grid = section.querySelector<HTMLElement>('.charts')!;
      grid.hidden = isFolded;
      place(
        grid,
        matching.map(card => card.element),
      );
      if (!section.hidden) shown.push(section);
    }
    for (const [id, card] of this.byId) if (!wanted.has(id)) this.drop(id, card);
    const nothing =
      shown.length === 0 &&
      notice({ kind: 'empty', title: 'No matching metrics', text: `Nothing in this run matches “${search}”.` });
    place(this.element, [...shown, ...(nothing ? [nothing] : []), this.eventSection(view, events)]);
  }

  /** Replaces all charts with other content, followed by the events if given. */
  showInstead(content: HTMLElement, view: DashboardView, events?: ShownEvents): void {
    for (const [id, card] of this.byId) this.drop(id, card);
    replaceChildren(this.element, content, events && this.eventSection(view, events));
  }

  /** Scrolls to the opened event and focuses it. */
  revealEvent(): void {
    const row = this.element.querySelector<HTMLElement>('.event-table .opened');
    row?.scrollIntoView({ block: 'nearest' });
    row?.focus();
  }

  private settle(chart: ChartSpec, group: ChartGroup, { enlarged, log, pinned }: DashboardView): void {
    let card = this.byId.get(chart.id);
    if (!card) {
      card = this.make(chart);
      this.byId.set(chart.id, card);
      this.observer.observe(card.element);
    }
    card.setSpec(chart);
    card.set({
      large: enlarged.includes(chart.id),
      log: log.includes(chart.id),
      pinned: group.id === pinnedGroup || (pinned ?? []).includes(chart.id),
    });
  }

  private drop(id: string, card: Card): void {
    this.observer.unobserve(card.element);
    card.dispose();
    this.byId.delete(id);
  }

  private section(id: string, title: string, foldable: boolean): HTMLElement {
    let section = this.sections.get(id);
    if (!section) {
      const fold = h('button', { class: 'plain fold', type: 'button', 'aria-expanded': 'true' }, title);
      fold.addEventListener('click', () => this.toggleFold(id));
      const heading = h('h2', { class: foldable ? 'group-title' : 'visually-hidden' }, foldable ? fold : title);
      section = h('section', { class: 'group', 'data-group': id }, heading, h('div', { class: 'charts' }));
      this.sections.set(id, section);
    }
    return section;
  }

  private eventSection(view: DashboardView, { events, opened }: ShownEvents): HTMLElement {
    const section = this.section('events', 'Events', true);
    const open = !view.folded.includes('events');
    section.hidden = events.length === 0;
    setText(section.querySelector('.fold')!, `Events (${events.length})`);
    setAttribute(section.querySelector('.fold')!, 'aria-expanded', String(open));
    const list = section.querySelector<HTMLElement>('.charts, .events')!;
    list.className = 'events';
    list.hidden = !open;
    const made = `${open} ${events.length} ${events.indexOf(opened!)}`;
    if (list.dataset.made === made) return section;
    list.dataset.made = made;
    replaceChildren(list, open && eventList(events, opened));
    return section;
  }
}

/** Makes `children` the children of `parent`, moving only those that are out of place. */
function place(parent: HTMLElement, children: HTMLElement[]): void {
  children.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild!.remove();
}
