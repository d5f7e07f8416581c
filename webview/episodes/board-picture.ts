// A board as a small picture in the theme's colours, from the drawing that the host's pictures share.
import { describeBoard, type Board } from '../../extension/protocol/board';
import { boardDrawing } from '../../extension/protocol/board-picture';
import { svg } from '../shared/dom';
import type { Theme } from '../shared/theme';

/** An SVG of the board; `previous` is the board of the turn before. */
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
