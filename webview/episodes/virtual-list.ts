// A list that holds only the rows on screen, all of one height, so that a step with thousands of episodes scrolls as one with ten.
// It is one stop of the Tab key; arrows move the choice among the items that can be chosen.
import { h, replaceChildren, setAttribute } from '../shared/dom';

export interface VirtualListOptions<T extends { key: string }> {
  label: string;
  rowHeight: number;
  /** A row's content and what a screen reader says of it. */
  render(item: T): { content: Node[]; label: string; class: string };
  /** Headings cannot be chosen. */
  selectable(item: T): boolean;
  onSelect(item: T): void;
}

/** Rows drawn above and below what is on screen. */
const margin = 8;

export class VirtualList<T extends { key: string }> {
  readonly element: HTMLElement;
  private readonly body = h('div', { class: 'list-body', role: 'presentation' });
  private items: T[] = [];
  private selected: string | null = null;

  constructor(private readonly options: VirtualListOptions<T>) {
    this.element = h('div', { class: 'list', role: 'listbox', tabindex: 0, 'aria-label': options.label }, this.body);
    this.element.addEventListener('scroll', () => this.draw(), { passive: true });
    this.element.addEventListener('keydown', event => this.onKey(event));
    this.body.addEventListener('click', event => {
      const row = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
      const item = row && this.items[Number(row.dataset.index)];
      if (item && options.selectable(item)) this.choose(item);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  setItems(items: T[]): void {
    this.items = items;
    this.body.style.height = `${items.length * this.options.rowHeight}px`;
    this.draw();
  }

  /** Marks an item and brings it on screen; null marks none. */
  select(key: string | null): void {
    this.selected = key;
    const index = this.items.findIndex(item => item.key === key);
    if (index >= 0) this.bringInView(index);
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
    const can = this.items.flatMap((item, i) => (this.options.selectable(item) ? [i] : []));
    if (can.length === 0) return;
    const now = can.findIndex(i => this.items[i].key === this.selected);
    const next = now < 0 ? 0 : Math.max(0, Math.min(can.length - 1, now + moves[event.key]));
    this.choose(this.items[can[next]]);
  }

  /** Height on screen; a guess where there is no layout yet. */
  private get viewport(): number {
    return this.element.clientHeight || 600;
  }

  private bringInView(index: number): void {
    const { rowHeight } = this.options;
    const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
    const { element } = this;
    // One row more on top, so that the group's heading is seen with its first member.
    if (top - rowHeight < element.scrollTop) element.scrollTop = Math.max(0, top - rowHeight);
    else if (bottom > element.scrollTop + this.viewport) element.scrollTop = bottom - this.viewport;
  }

  private draw(): void {
    const { rowHeight } = this.options;
    const first = Math.max(0, Math.floor(this.element.scrollTop / rowHeight) - margin);
    const last = Math.min(this.items.length, Math.ceil((this.element.scrollTop + this.viewport) / rowHeight) + margin);
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i++) rows.push(this.row(i));
    replaceChildren(this.body, ...rows);
    const chosen = this.items.findIndex(item => item.key === this.selected);
    setAttribute(this.element, 'aria-activedescendant', chosen >= first && chosen < last ? `row-${chosen}` : null);
  }

  private row(index: number): HTMLElement {
    const item = this.items[index];
    const { content, label, class: name } = this.options.render(item);
    const canChoose = this.options.selectable(item);
    return h(
      'div',
      {
        id: `row-${index}`,
        class: `list-row ${name}`,
        role: canChoose ? 'option' : 'presentation',
        'data-index': index,
        'aria-selected': canChoose ? String(item.key === this.selected) : null,
        'aria-label': canChoose ? label : null,
        'aria-setsize': canChoose ? this.items.length : null,
        'aria-posinset': canChoose ? index + 1 : null,
        style: `transform:translateY(${index * this.options.rowHeight}px);height:${this.options.rowHeight}px`,
      },
      ...content,
    );
  }
}
