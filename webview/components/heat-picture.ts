// A picture with a heat map over it: the picture in shades of grey, and each cell of the map in one colour, the more
// opaque the larger its value. Pointer and arrow keys move over the cells; the line below names a cell and its value, so
// nothing depends on the colour alone. A `bare` heat map has neither keys nor line; what contains it describes it.
import { html, LitElement, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { styleMap } from 'lit/directives/style-map.js';
import { maximum } from '../../extension/common/lists';
import type { HeatMap } from '../../extension/protocol/heat-maps';
import { formatNumber } from '../shared/format';
import { sizeOf } from './lazy-picture';

/** Opacity of a cell with the largest value of the scale; below 1, so that the picture remains visible. */
export const fullHeat = 0.85;

export class HeatPicture extends LitElement {
  static override properties = {
    src: { attribute: false },
    label: { attribute: false },
    map: { attribute: false },
    most: { attribute: false },
    colour: { attribute: false },
    bare: { attribute: false },
    cell: { state: true },
  };
  /** Data URL of a PNG or JPEG file. */
  declare src: string;
  /** Text that stands for the picture. */
  declare label: string;
  declare map: HeatMap;
  /** Value with the full opacity, in nats. */
  declare most: number;
  /** Colour of the cells, as `#rrggbb`. */
  declare colour: string;
  declare bare: boolean;
  /** Index of the named cell; null names the strongest one. */
  declare private cell: number | null;

  constructor() {
    super();
    [this.src, this.label, this.colour] = ['', '', '#000000'];
    this.map = { rows: 0, columns: 0, values: [] };
    this.most = 0;
    this.bare = false;
    this.cell = null;
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('map')) this.cell = null;
  }

  override render(): TemplateResult {
    const { src, label, map, bare, cell } = this;
    const { width, height } = sizeOf(src) ?? { width: 1, height: 1 };
    const picture = html`<lazy-picture .src=${src} .label=${''}></lazy-picture><canvas aria-hidden="true"></canvas>`;
    const shape = { '--ratio': `${width} / ${height}` };
    if (bare) return html`<span class="heat-frame" style=${styleMap(shape)}>${picture}</span>`;
    const strongest = describeStrongest(map);
    return html`<div
        class="heat-frame"
        style=${styleMap(shape)}
        role="img"
        tabindex="0"
        aria-label="${label}, heat map of ${map.rows} rows and ${map.columns} columns, ${strongest}"
        @keydown=${this.onKey}
        @pointermove=${this.onPointer}
        @pointerleave=${() => (this.cell = null)}
        @blur=${() => (this.cell = null)}
        >${picture}${cell === null ? nothing : this.cursor(cell)}</div
      ><p class="heat-readout muted" aria-live="polite">${cell === null ? strongest : describeCell(map, cell)}</p>`;
  }

  protected override updated(): void {
    const { rows, columns, values } = this.map;
    const canvas = this.querySelector('canvas')!;
    [canvas.width, canvas.height] = [columns, rows];
    const context = canvas.getContext('2d');
    if (!context || values.length === 0) return;
    const image = context.createImageData(columns, rows);
    const [red, green, blue] = [1, 3, 5].map(at => Number.parseInt(this.colour.slice(at, at + 2), 16));
    values.forEach((value, i) => {
      const share = this.most > 0 ? Math.min(1, value / this.most) : 0;
      image.data.set([red, green, blue, Math.round(255 * fullHeat * share)], 4 * i);
    });
    context.putImageData(image, 0, 0);
  }

  private cursor(cell: number): TemplateResult {
    const { rows, columns } = this.map;
    const place = {
      left: `${((cell % columns) / columns) * 100}%`,
      top: `${(Math.floor(cell / columns) / rows) * 100}%`,
      width: `${100 / columns}%`,
      height: `${100 / rows}%`,
    };
    return html`<span class="heat-cursor" style=${styleMap(place)}></span>`;
  }

  private readonly onPointer = ({ clientX, clientY, currentTarget }: PointerEvent): void => {
    const { rows, columns } = this.map;
    const box = (currentTarget as Element).getBoundingClientRect();
    const along = (share: number, count: number): number => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    this.cell =
      along((clientY - box.top) / box.height, rows) * columns + along((clientX - box.left) / box.width, columns);
  };

  private readonly onKey = (event: KeyboardEvent): void => {
    const { rows, columns, values } = this.map;
    if (event.ctrlKey || event.metaKey || event.altKey || values.length === 0) return;
    if (event.key === 'Escape' && this.cell === null) return; // the page's key
    const at = this.cell ?? strongestCell(this.map);
    const [row, column] = [Math.floor(at / columns), at % columns];
    const moves: Record<string, readonly [number, number]> = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
    };
    if (Object.hasOwn(moves, event.key)) {
      const [toRow, toColumn] = moves[event.key];
      this.cell = Math.max(0, Math.min(rows - 1, toRow)) * columns + Math.max(0, Math.min(columns - 1, toColumn));
    } else if (event.key === 'Home') this.cell = strongestCell(this.map);
    else if (event.key === 'Escape') this.cell = null;
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}

/** Index of the cell with the largest value. */
const strongestCell = ({ values }: HeatMap): number => values.indexOf(maximum(values));

/** Returns `strongest at row 2, column 3: 0.43 nats`. */
export const describeStrongest = (map: HeatMap): string => `strongest at ${describeCell(map, strongestCell(map))}`;

const describeCell = ({ columns, values }: HeatMap, cell: number): string =>
  `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}: ${formatNumber(values[cell])} nats`;

customElements.define('heat-picture', HeatPicture);
