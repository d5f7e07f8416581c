// A list that renders only the rows on screen, all of the same height, so that a hundred thousand episodes scroll as
// fast as ten. It is a single tab stop; arrow keys move the selection among selectable items.
import { h, replaceChildren, setAttribute } from '../shared/dom';

/** Content of a list; items are created when drawn. */
export interface ListSource<T> {
  readonly length: number;
  at(index: number): T;
  /** Index of the item with a key; -1 if there is none. */
  find(key: string): number;
  /** The first index from `index` on, in the given direction, whose item is selectable; -1 if there is none. */
  episodeFrom(index: number, direction: 1 | -1): number;
}

export interface VirtualListOptions<T extends { key: string }> {
  label: string;
  rowHeight: number;
  /** A row's content, accessible label and class. */
  render(item: T): { content: Node[]; label: string; class: string };
  /** Headings are not selectable. */
  selectable(item: T): boolean;
  onSelect(item: T): void;
  /** Called when the first index on screen has changed. */
  onScroll(top: number): void;
}

/** Number of rows drawn above and below the visible ones. */
const margin = 8;
/**
 * Maximum height in CSS pixels: browsers limit elements to about 33 million device pixels, of which a CSS pixel may
 * have two.
 */
const tallest = 15_000_000;

export class VirtualList<T extends { key: string }> {
  readonly element: HTMLElement;
  private readonly body = h('div', { class: 'list-body', role: 'presentation' });
  private source: ListSource<T> = { length: 0, at: () => null as never, find: () => -1, episodeFrom: () => -1 };
  private selected: string | null = null;

  constructor(private readonly options: VirtualListOptions<T>) {
    this.element = h('div', { class: 'list', role: 'listbox', tabindex: 0, 'aria-label': options.label }, this.body);
    this.element.addEventListener(
      'scroll',
      () => {
        this.draw();
        options.onScroll(this.top);
      },
      { passive: true },
    );
    this.element.addEventListener('keydown', event => this.onKey(event));
    this.body.addEventListener('click', event => {
      const row = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
      const item = row && this.source.at(Number(row.dataset.index));
      if (item && options.selectable(item)) this.choose(item);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** The first index on screen. */
  get top(): number {
    return Math.floor(this.scrolled / this.options.rowHeight);
  }

  /** Replaces the items. The row at the top keeps its position, unless the list is scrolled to its start. */
  setSource(source: ListSource<T>): void {
    const { top } = this;
    const anchor = this.element.scrollTop > 0 ? this.source.episodeFrom(top, 1) : -1;
    const key = anchor >= 0 ? this.source.at(anchor).key : null;
    const offset = this.scrolled - anchor * this.options.rowHeight;
    this.source = source;
    this.body.style.height = `${Math.min(tallest, source.length * this.options.rowHeight)}px`;
    const now = key === null ? -1 : source.find(key);
    if (now >= 0) this.scrollTo(now * this.options.rowHeight + offset);
    this.draw();
  }

  /** Selects an item and scrolls to it; null clears the selection. */
  select(key: string | null): void {
    this.selected = key;
    const index = key === null ? -1 : this.source.find(key);
    if (index >= 0) this.bringInView(index);
    this.draw();
  }

  /** Scrolls an index to the top. */
  showFrom(index: number): void {
    this.scrollTo(index * this.options.rowHeight);
    this.draw();
  }

  private choose(item: T): void {
    this.select(item.key);
    this.options.onSelect(item);
  }

  private onKey(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.viewport / this.options.rowHeight) - 1);
    const moves: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (!Object.hasOwn(moves, event.key)) return;
    event.preventDefault();
    const by = moves[event.key];
    const { source } = this;
    const now = this.selected === null ? -1 : source.find(this.selected);
    const to = Math.max(0, Math.min(source.length - 1, now < 0 && by === 1 ? 0 : now + by));
    const ways = by > 0 ? ([1, -1] as const) : ([-1, 1] as const);
    const next = ways.map(way => source.episodeFrom(to, way)).find(at => at >= 0);
    if (next !== undefined) this.choose(source.at(next));
  }

  /** Visible height; an estimate if there is no layout yet. */
  private get viewport(): number {
    return this.element.clientHeight || 600;
  }

  /** Ratio of the height of all rows to the scrollable height: 1 except for the longest lists. */
  private get stretch(): number {
    const whole = this.source.length * this.options.rowHeight;
    return whole <= tallest ? 1 : (whole - this.viewport) / (tallest - this.viewport);
  }

  private get scrolled(): number {
    return this.element.scrollTop * this.stretch;
  }

  private scrollTo(pixels: number): void {
    this.element.scrollTop = Math.max(0, pixels / this.stretch);
  }

  private bringInView(index: number): void {
    const { rowHeight } = this.options;
    const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
    // One more row at the top, so that the group's heading is visible with its first member.
    if (top - rowHeight < this.scrolled) this.scrollTo(top - rowHeight);
    else if (bottom > this.scrolled + this.viewport) this.scrollTo(bottom - this.viewport);
  }

  private draw(): void {
    const { rowHeight } = this.options;
    const first = Math.max(0, this.top - margin);
    const last = Math.min(this.source.length, Math.ceil((this.scrolled + this.viewport) / rowHeight) + margin);
    const shift = this.scrolled - this.element.scrollTop;
    const chosen = this.selected === null ? -1 : this.source.find(this.selected);
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i++) rows.push(this.row(i, i === chosen, i * rowHeight - shift));
    replaceChildren(this.body, ...rows);
    setAttribute(this.element, 'aria-activedescendant', chosen >= first && chosen < last ? `row-${chosen}` : null);
  }

  private row(index: number, chosen: boolean, y: number): HTMLElement {
    const item = this.source.at(index);
    const { content, label, class: name } = this.options.render(item);
    const canChoose = this.options.selectable(item);
    return h(
      'div',
      {
        id: `row-${index}`,
        class: `list-row ${name}`,
        role: canChoose ? 'option' : 'presentation',
        'data-index': index,
        'aria-selected': canChoose ? String(chosen) : null,
        'aria-label': canChoose ? label : null,
        'aria-setsize': canChoose ? this.source.length : null,
        'aria-posinset': canChoose ? index + 1 : null,
        style: `transform:translateY(${y}px);height:${this.options.rowHeight}px`,
      },
      ...content,
    );
  }
}
