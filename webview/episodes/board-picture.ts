// A board as a small picture in the theme's colours. Shapes differ as well as colours, and what changed since the turn before is
// framed, so that a glance down the column shows what each turn did.
import { svg } from '../shared/dom';
import { hue, withAlpha } from '../shared/palette';
import type { Theme } from '../shared/theme';
import { changedCells, describeBoard, type Board, type Cell } from './board';

const unit = 20;

/** An SVG of the board; `previous` is the board of the turn before. */
export function boardPicture(board: Board, previous: Board | null, theme: Theme): SVGElement {
  const changed = changedCells(board, previous);
  const [rows, columns] = [board.cells.length, board.cells[0].length];
  const [width, height] = [columns * unit, rows * unit];
  const picture = svg('svg', {
    class: 'board',
    role: 'img',
    'aria-label': describeBoard(board),
    viewBox: `-1 -1 ${width + 2} ${height + 2}`,
    width: width + 2,
    height: height + 2,
  });
  board.cells.forEach((row, r) =>
    row.forEach((cell, c) => {
      const group = svg('g', { transform: `translate(${c * unit} ${r * unit})` }, ...shapes(cell, theme));
      if (changed.has(`${r},${c}`)) group.append(frame(theme));
      picture.append(group);
    }),
  );
  return picture;
}

function shapes(cell: Cell, theme: Theme): SVGElement[] {
  const { palette, foreground } = theme;
  const [target, box, solved, player, hole] = [
    palette[hue.vermillion],
    palette[hue.orange],
    palette[hue.green],
    palette[hue.blue],
    palette[hue.purple],
  ];
  const floor = square(0.5, { fill: 'none', stroke: theme.border, 'stroke-width': 1 });
  const ring = svg('circle', { cx: unit / 2, cy: unit / 2, r: 5.5, fill: 'none', stroke: target, 'stroke-width': 2 });
  const person = svg('circle', { cx: unit / 2, cy: unit / 2, r: 5.5, fill: player });
  const pit = svg('circle', {
    cx: unit / 2,
    cy: unit / 2,
    r: 7,
    fill: withAlpha(hole, 0.45),
    stroke: hole,
    'stroke-width': 1.5,
  });
  const diamond = svg('path', {
    d: `M10 3.5L16.5 10 10 16.5 3.5 10z`,
    fill: withAlpha(solved, 0.3),
    stroke: solved,
    'stroke-width': 2,
  });
  const small = svg('circle', { cx: unit / 2, cy: unit / 2, r: 3.5, fill: player });
  switch (cell) {
    case 'wall':
      return [square(0, { fill: foreground, opacity: 0.24 })];
    case 'empty':
      return [floor];
    case 'target':
      return [floor, ring];
    case 'box':
      return [floor, square(4, { fill: withAlpha(box, 0.35), stroke: box, 'stroke-width': 2 })];
    case 'box_on_target':
      return [floor, square(4, { fill: solved, stroke: solved, 'stroke-width': 2 }), check(theme.background)];
    case 'player':
      return [floor, person];
    case 'player_on_target':
      return [
        floor,
        svg('circle', { cx: unit / 2, cy: unit / 2, r: 8, fill: 'none', stroke: target, 'stroke-width': 2 }),
        small,
      ];
    case 'hole':
      return [floor, pit];
    case 'goal':
      return [floor, diamond];
    case 'player_in_hole':
      return [floor, pit, small];
    case 'player_on_goal':
      return [floor, diamond, small];
  }
}

const square = (inset: number, attributes: Record<string, string | number>) =>
  svg('rect', { x: inset, y: inset, width: unit - 2 * inset, height: unit - 2 * inset, ...attributes });

const check = (colour: string) =>
  svg('path', { d: 'M6.5 10.5l2.5 2.5 4.5-5.5', fill: 'none', stroke: colour, 'stroke-width': 2 });

const frame = (theme: Theme) =>
  square(0.5, {
    class: 'changed',
    fill: 'none',
    stroke: theme.foreground,
    'stroke-width': 1.5,
    'stroke-dasharray': '3 2',
  });
