// A board as a small SVG in the theme's colours; the extension host's pictures use the same drawing code. Cells are
// created directly in the DOM, and only when the board changes, because sixteen episodes side by side have thousands of
// cells.
import { html, noChange, type TemplateResult } from 'lit';
import { Directive, directive, type ElementPart } from 'lit/directive.js';
import { describeBoard, type Board } from '../../extension/common/board';
import { boardDrawing, type BoardDrawing } from '../../extension/common/board-picture';
import { svg } from '../shared/dom';
import type { Theme } from '../shared/theme';

/** Renders an SVG of the board; `previous` is the board of the previous turn. */
export function boardPicture(board: Board, previous: Board | null, theme: Theme): TemplateResult {
  const { width, height, cells } = boardDrawing(board, previous, theme);
  return html`<svg
    class="board"
    role="img"
    aria-label=${describeBoard(board)}
    viewBox="-1 -1 ${width + 2} ${height + 2}"
    width=${width + 2}
    height=${height + 2}
    ${drawnCells(cells)}
  ></svg>`;
}

type Cells = BoardDrawing['cells'];

class DrawnCells extends Directive {
  private drawn = '';

  override update({ element }: ElementPart, [cells]: [Cells]): typeof noChange {
    const drawing = JSON.stringify(cells);
    if (drawing !== this.drawn) element.replaceChildren(...cells.map(cellElement));
    this.drawn = drawing;
    return noChange;
  }

  render(_cells: Cells): typeof noChange {
    return noChange;
  }
}
const drawnCells = directive(DrawnCells);

const cellElement = ({ x, y, shapes }: Cells[number]): SVGElement =>
  svg('g', { transform: `translate(${x} ${y})` }, ...shapes.map(({ tag, attributes }) => svg(tag, attributes)));
