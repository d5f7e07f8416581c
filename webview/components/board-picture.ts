// A board as a small SVG in the theme's colours, based on the drawing shared with the host's pictures.
import { html, svg, type TemplateResult } from 'lit';
import { describeBoard, type Board } from '../../extension/common/board';
import { boardDrawing, type Shape } from '../../extension/common/board-picture';
import type { Theme } from '../shared/theme';
import { attributes } from './attributes';

/** An SVG of the board; `previous` is the board of the previous turn. */
export function boardPicture(board: Board, previous: Board | null, theme: Theme): TemplateResult {
  const { width, height, cells } = boardDrawing(board, previous, theme);
  const groups = cells.map(({ x, y, shapes }) => svg`<g transform="translate(${x} ${y})">${shapes.map(shapeView)}</g>`);
  return html`<svg
    class="board"
    role="img"
    aria-label=${describeBoard(board)}
    viewBox="-1 -1 ${width + 2} ${height + 2}"
    width=${width + 2}
    height=${height + 2}
  >
    ${groups}
  </svg>`;
}

function shapeView({ tag, attributes: values }: Shape): TemplateResult<2> {
  switch (tag) {
    case 'rect':
      return svg`<rect ${attributes(values)}></rect>`;
    case 'circle':
      return svg`<circle ${attributes(values)}></circle>`;
    case 'path':
      return svg`<path ${attributes(values)}></path>`;
  }
}
