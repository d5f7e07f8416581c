// A list that renders only the rows on screen. All rows have the same height. The reasons for not using
// `@lit-labs/virtualizer` are in docs/decisions/0017. The list is a single tab stop; arrow keys move the selection
// among selectable rows.
import { html, LitElement, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { entryOfKey } from '../shared/keyboard';

/** Content of a list; items are created when drawn. */
export interface ListSource<T> {
  readonly length: number;
  at(index: number): T;
  /** Returns the index of the item with a key; -1 if there is none. */
  find(key: string): number;
  /**
   * Returns the index of the first selectable item at or beyond `index` in the given direction; -1 if there is none.
   */
  selectableFrom(index: number, direction: 1 | -1): number;
}

/** A row's content, accessible label and class. */
export interface ListRow {
  content: unknown;
  label: string;
  class: string;
  /** Whether the row can be selected; false for headings. */
  selectable: boolean;
}

/** Number of rows drawn above the visible rows, and number of rows drawn below them. */
const margin = 8;
/**
 * Maximum height in CSS pixels: browsers limit elements to about 33 million device pixels, and a CSS pixel may be two
 * device pixels.
 */
const tallest = 15_000_000;

/** The keys of a list with the focus: by how many rows they move the selection. `page` is the number of rows on screen. */
export const listKeys: Readonly<Record<string, { does: string; by(page: number): number }>> = {
  ArrowDown: { does: 'Next or previous row', by: () => 1 },
  ArrowUp: { does: 'Next or previous row', by: () => -1 },
  PageDown: { does: 'Next or previous page', by: page => page },
  PageUp: { does: 'Next or previous page', by: page => -page },
  Home: { does: 'First or last row', by: () => -Infinity },
  End: { does: 'First or last row', by: () => Infinity },
};

export class VirtualList<T extends { key: string } = { key: string }> extends LitElement {
  static override properties = {
    source: { attribute: false },
    selected: { attribute: false },
    rowHeight: { attribute: false },
    renderRow: { attribute: false },
  };

  /**
   * Content of the list. When the source is replaced, the first visible row keeps its position. A list that is scrolled
   * to its start stays there.
   */
  declare source: ListSource<T>;
  /** Key of the selected item. When the key changes, the list scrolls the item into view. */
  declare selected: string | null;
  declare rowHeight: number;
  declare renderRow: (item: T) => ListRow;
  declare onChoose: (item: T) => void;
  /** Called with the index of the first row on screen whenever this index has changed. */
  declare onTop: (top: number) => void;

  private readonly resizes = new ResizeObserver(() => this.requestUpdate());
  /** Pending scroll position for the next update, in pixels from the first row; null if none is pending. */
  private target: number | null = null;
  /** The last index passed to `onTop`. */
  private reported = 0;

  constructor() {
    super();
    this.source = { length: 0, at: () => null as never, find: () => -1, selectableFrom: () => -1 };
    this.selected = null;
    this.rowHeight = 24;
    this.renderRow = () => ({ content: nothing, label: '', class: '', selectable: false });
    this.onChoose = () => undefined;
    this.onTop = () => undefined;
    this.addEventListener('keydown', event => this.onKey(event));
    this.addEventListener('click', event => this.onRowClick(event));
    this.addEventListener('scroll', () => this.onScrolled(), { passive: true });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.setAttribute('role', 'listbox');
    this.tabIndex = 0;
    this.resizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.resizes.disconnect();
  }

  /** Index of the first row on screen. */
  get top(): number {
    return Math.floor(this.scrolled / this.rowHeight);
  }

  /** Scrolls the list so that the row with this index is at the top. */
  showFrom(index: number): void {
    this.scrollToPixel(index * this.rowHeight);
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(changed: PropertyValues<VirtualList>): void {
    const before = changed.get('source');
    if (before) this.keepPosition(before as ListSource<T>);
    if (changed.has('selected') && this.selected !== null) this.bringInView(this.source.find(this.selected));
  }

  protected override render(): TemplateResult {
    const { rowHeight, source } = this;
    const first = Math.max(0, this.top - margin);
    const last = Math.min(source.length, Math.ceil((this.scrolled + this.viewport) / rowHeight) + margin);
    const shift = this.scrolled - this.scrolled / this.stretch(source);
    const chosen = this.selected === null ? -1 : source.find(this.selected);
    const rows: TemplateResult[] = [];
    for (let i = first; i < last; i++) rows.push(this.row(i, i === chosen, i * rowHeight - shift));
    const isDrawn = chosen >= first && chosen < last;
    if (isDrawn) this.setAttribute('aria-activedescendant', `row-${chosen}`);
    else this.removeAttribute('aria-activedescendant');
    const height = Math.min(tallest, source.length * rowHeight);
    return html`<div class="list-body" role="presentation" style="height:${height}px">${rows}</div>`;
  }

  protected override updated(): void {
    if (this.target !== null) {
      const { target } = this;
      this.target = null;
      this.scrollTop = target / this.stretch(this.source);
    }
    const { top } = this;
    if (top !== this.reported) this.onTop((this.reported = top));
  }

  private row(index: number, chosen: boolean, y: number): TemplateResult {
    const { content, label, class: name, selectable } = this.renderRow(this.source.at(index));
    return html`<div
      id="row-${index}"
      class="list-row ${name}"
      role=${selectable ? 'option' : 'presentation'}
      data-index=${index}
      aria-selected=${selectable ? String(chosen) : nothing}
      aria-label=${selectable ? label : nothing}
      aria-setsize=${selectable ? this.source.length : nothing}
      aria-posinset=${selectable ? index + 1 : nothing}
      style="transform:translateY(${y}px);height:${this.rowHeight}px"
      >${content}</div
    >`;
  }

  private onScrolled(): void {
    this.requestUpdate();
    this.performUpdate(); // immediately, because waiting a frame shows empty rows during fast scrolling
  }

  private onRowClick(event: Event): void {
    const row = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
    if (row?.getAttribute('role') === 'option') this.choose(Number(row.dataset.index));
  }

  /**
   * Selects a row and scrolls it into view. This method itself scrolls only if the row is already selected; otherwise
   * the change of `selected` causes the scrolling.
   */
  private choose(index: number): void {
    const item = this.source.at(index);
    if (item.key === this.selected) this.bringInView(index);
    this.onChoose(item);
  }

  private onKey(event: KeyboardEvent): void {
    const move = entryOfKey(listKeys, event);
    if (!move) return;
    event.preventDefault();
    const by = move.by(Math.max(1, Math.floor(this.viewport / this.rowHeight) - 1));
    const { source } = this;
    const now = this.selected === null ? -1 : source.find(this.selected);
    const to = Math.max(0, Math.min(source.length - 1, now < 0 && by === 1 ? 0 : now + by));
    const ways = by > 0 ? ([1, -1] as const) : ([-1, 1] as const);
    const next = ways.map(way => source.selectableFrom(to, way)).find(at => at >= 0);
    if (next !== undefined) this.choose(next);
  }

  /**
   * Keeps the first visible row in place. If the new source does not contain this row, keeps the scroll offset instead;
   * if the new list is too short for this offset, the offset is reduced.
   */
  private keepPosition(before: ListSource<T>): void {
    if (this.scrollTop === 0) return;
    const { rowHeight, source } = this;
    const scrolled = this.scrollTop * this.stretch(before);
    const anchor = before.selectableFrom(Math.floor(scrolled / rowHeight), 1);
    const now = anchor >= 0 ? source.find(before.at(anchor).key) : -1;
    this.scrollToPixel(now >= 0 ? scrolled + (now - anchor) * rowHeight : scrolled);
  }

  private bringInView(index: number): void {
    if (index < 0) return;
    const { rowHeight } = this;
    const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
    // Also shows the row above the selected row, because that row may be a heading.
    if (top - rowHeight < this.scrolled) this.scrollToPixel(top - rowHeight);
    else if (bottom > this.scrolled + this.viewport) this.scrollToPixel(bottom - this.viewport);
  }

  private scrollToPixel(pixel: number): void {
    const end = this.source.length * this.rowHeight - this.viewport;
    this.target = Math.max(0, Math.min(pixel, end));
    this.requestUpdate();
  }

  /** Visible height in pixels; an estimate before the first layout. */
  private get viewport(): number {
    return this.clientHeight || 600;
  }

  private get scrolled(): number {
    return this.target ?? this.scrollTop * this.stretch(this.source);
  }

  /**
   * Returns the number of pixels by which the rows move when the user scrolls by one pixel. This number is greater than
   * 1 only if all rows together exceed the maximum height.
   */
  private stretch({ length }: ListSource<T>): number {
    const whole = length * this.rowHeight;
    return whole <= tallest ? 1 : (whole - this.viewport) / (tallest - this.viewport);
  }
}

customElements.define('virtual-list', VirtualList);
