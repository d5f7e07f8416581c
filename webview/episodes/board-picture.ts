// A board as a small SVG in the theme's colours, based on the drawing shared with the host's pictures.
import { describeBoard, type Board } from '../../extension/common/board';
import { boardDrawing } from '../../extension/common/board-picture';
import { svg } from '../shared/dom';
import type { Theme } from '../shared/theme';

/** An SVG of the board; `previous` is the board of the previous turn. */
export function boardPicture(board: Board, previous: Board | null, theme: Theme): SVGElement {
  const { width, height, cells } = boardDrawing(board, previous, theme);
  return svg(
    'svg',
    {
      class: 'board',
      role: 'img',
      'aria-label': describeBoard(board),
      viewBox: `-1 -1 ${width + 2} ${height + 2}`,
      width: width + 2,
      height: height + 2,
    },
    ...cells.map(({ x, y, shapes }) =>
      svg('g', { transform: `translate(${x} ${y})` }, ...shapes.map(({ tag, attributes }) => svg(tag, attributes))),
    ),
  );
}
