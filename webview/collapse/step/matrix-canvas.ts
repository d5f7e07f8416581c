// The matrix as a heat map. In a blue cell, the reasoning is less likely under the column's prompt than under its own
// prompt; in an orange cell, it is more likely. An outline marks the selected cell. In each row, another outline marks
// the cell of the reasoning's own prompt, for which it was sampled. Pointer and arrow keys select a cell. For screen
// readers, a table and a text about the selected cell replace the canvas.
import { html, type TemplateResult } from 'lit';
import { PaintedElement } from '../../components/painted-element';
import { entryOfKey } from '../../shared/keyboard';
import { hue, withAlpha } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';
import { describeMatrix, type Cell, type Matrix, type ScoredFamily } from './matrix';

const moved = (rows: number, columns: number) => ({
  does: 'Select another cell',
  run: (canvas: MatrixCanvas) => canvas.onCell({ row: canvas.cell.row + rows, column: canvas.cell.column + columns }),
});

/** The keys of the matrix with the focus. */
export const matrixKeys: Readonly<Record<string, { does: string; run(canvas: MatrixCanvas): void }>> = {
  ...{ ArrowUp: moved(-1, 0), ArrowDown: moved(1, 0), ArrowLeft: moved(0, -1), ArrowRight: moved(0, 1) },
  Home: {
    does: 'Select the cell of the reasoning’s own prompt',
    run: ({ cell: { row }, scored, onCell }) => onCell({ row, column: scored.matrix.own[row] }),
  },
  Enter: { does: 'Open the episode of the selected cell', run: ({ onOpen }) => onOpen() },
};

export class MatrixCanvas extends PaintedElement {
  static override properties = {
    scored: { attribute: false },
    cell: { attribute: false },
    theme: { attribute: false },
  };

  declare scored: ScoredFamily;
  declare cell: Cell;
  declare theme: Theme;
  /** Called with the cell to select. An arrow key at the edge yields a cell outside the matrix. */
  declare onCell: (cell: Cell) => void;
  /** Called to open the episode of the selected cell. */
  declare onOpen: () => void;

  protected override render(): TemplateResult {
    return html`<canvas
      tabindex="0"
      role="img"
      aria-describedby="cell-words"
      aria-label=${describeMatrix(this.scored)}
      @pointermove=${(event: PointerEvent) => this.onPointerMove(event)}
      @click=${(event: PointerEvent) => this.onClick(event)}
      @keydown=${(event: KeyboardEvent) => this.onKey(event)}
    ></canvas>`;
  }

  private onPointerMove(event: PointerEvent): void {
    const { row, column } = this.cellAt(event);
    if (row !== this.cell.row || column !== this.cell.column) this.onCell({ row, column });
  }

  private onClick(event: PointerEvent): void {
    this.onCell(this.cellAt(event));
    this.onOpen();
  }

  private onKey(event: KeyboardEvent): void {
    const action = entryOfKey(matrixKeys, event);
    if (!action) return;
    event.preventDefault();
    action.run(this);
  }

  private cellAt({ currentTarget, clientX, clientY }: PointerEvent): Cell {
    const { left, top, width, height } = (currentTarget as HTMLElement).getBoundingClientRect();
    const { matrix, family } = this.scored;
    return {
      row: Math.floor(((clientY - top) / height) * matrix.order.length),
      column: Math.floor(((clientX - left) / width) * family.prompts.length),
    };
  }

  protected override paint(): void {
    const canvas = this.querySelector('canvas');
    const context = canvas?.getContext('2d');
    if (!canvas || !context) return;
    const { width, height } = canvas.getBoundingClientRect();
    if (width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.scale(ratio, ratio);
    paintCells(context, { width, height }, this.scored.matrix, this.cell, this.theme);
  }
}

customElements.define('matrix-canvas', MatrixCanvas);

function paintCells(
  context: CanvasRenderingContext2D,
  { width, height }: { width: number; height: number },
  { against, own, scale }: Matrix,
  cell: Cell,
  { palette, background, foreground, highContrast }: Theme,
): void {
  const [rows, columns] = [against.length, against[0]?.length ?? 0];
  const [w, h] = [width / columns, height / rows];
  const gap = Math.min(w, h) >= 7 ? 1 : 0;
  context.fillStyle = background;
  context.fillRect(0, 0, width, height);
  const box = (row: number, column: number): [number, number, number, number] => {
    const [left, top] = [Math.round(column * w), Math.round(row * h)];
    return [left, top, Math.round((column + 1) * w) - left - gap, Math.round((row + 1) * h) - top - gap];
  };
  against.forEach((values, row) =>
    values.forEach((value, column) => {
      const strength = Math.min(1, Math.abs(value) / scale) ** 0.8;
      context.fillStyle = withAlpha(
        palette[value > 0 ? hue.orange : hue.blue],
        Number((0.04 + 0.9 * strength).toFixed(3)),
      );
      context.fillRect(...box(row, column));
    }),
  );
  context.strokeStyle = foreground;
  context.lineWidth = highContrast ? 2 : 1;
  // Adjacent rows whose reasoning was sampled for the same prompt share an outline.
  for (let row = 0, end; row < own.length; row = end) {
    end = row + 1;
    while (end < own.length && own[end] === own[row]) end++;
    const [left, top, right] = box(row, own[row]);
    const [, last, , bottom] = box(end - 1, own[row]);
    context.strokeRect(left + 0.5, top + 0.5, Math.max(1, right - 1), Math.max(1, last + bottom - top - 1));
  }
  const [left, top, right, bottom] = box(cell.row, cell.column);
  context.lineWidth = 2;
  context.strokeRect(left - 1, top - 1, right + 2, bottom + 2);
}
