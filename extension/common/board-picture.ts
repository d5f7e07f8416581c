// Draws a board as SVG shapes in the colours of the data palette (palette.ts). Pages render the shapes as elements; the
// extension host writes them as SVG text. Each kind of cell has its own shape and colour. Cells that changed since the
// previous turn have a frame. All functions are pure.
import { changedCells, type Board, type Cell } from './board';
import { hue } from './palette';

/** Side length of a cell, in SVG units. */
const unit = 20;

/** An SVG element without children. */
export interface Shape {
  tag: 'rect' | 'circle' | 'path';
  attributes: Record<string, string | number>;
}

/** Theme colours of a drawing. */
export interface BoardColours {
  palette: readonly string[];
  background: string;
  foreground: string;
  border: string;
}

export interface BoardDrawing {
  width: number;
  height: number;
  /** Shapes of each cell, relative to its position. */
  cells: { x: number; y: number; shapes: Shape[] }[];
}

/** Returns the drawing of a board. `previous` is the board of the previous turn. */
export function boardDrawing(board: Board, previous: Board | null, colours: BoardColours): BoardDrawing {
  const changed = changedCells(board, previous);
  const cells = board.cells.flatMap((row, r) =>
    row.map((cell, c) => ({
      x: c * unit,
      y: r * unit,
      shapes: [...shapes(cell, colours), ...(changed.has(`${r},${c}`) ? [frame(colours)] : [])],
    })),
  );
  return { width: board.cells[0].length * unit, height: board.cells.length * unit, cells };
}

/** Returns the drawing as SVG text. */
export function boardSvg({ width, height, cells }: BoardDrawing): string {
  const element = ({ tag, attributes }: Shape) =>
    `<${tag}${Object.entries(attributes)
      .map(([name, value]) => ` ${name}="${value}"`)
      .join('')}/>`;
  const groups = cells.map(
    ({ x, y, shapes: each }) => `<g transform="translate(${x} ${y})">${each.map(element).join('')}</g>`,
  );
  const box = `viewBox="-1 -1 ${width + 2} ${height + 2}" width="${width + 2}" height="${height + 2}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${box}>${groups.join('')}</svg>`;
}

function shapes(cell: Cell, { palette, foreground, background, border }: BoardColours): Shape[] {
  const [target, box, solved, player, hole] = [
    palette[hue.vermillion],
    palette[hue.orange],
    palette[hue.green],
    palette[hue.blue],
    palette[hue.purple],
  ];
  const circle = (r: number, attributes: Shape['attributes']): Shape => ({
    tag: 'circle',
    attributes: { cx: unit / 2, cy: unit / 2, r, ...attributes },
  });
  const floor = square(0.5, { fill: 'none', stroke: border, 'stroke-width': 1 });
  const ring = circle(5.5, { fill: 'none', stroke: target, 'stroke-width': 2 });
  const person = circle(5.5, { fill: player });
  const pit = circle(7, { fill: hole, 'fill-opacity': 0.45, stroke: hole, 'stroke-width': 1.5 });
  const diamond = path('M10 3.5L16.5 10 10 16.5 3.5 10z', {
    fill: solved,
    'fill-opacity': 0.3,
    stroke: solved,
    'stroke-width': 2,
  });
  const small = circle(3.5, { fill: player });
  switch (cell) {
    case 'wall':
      return [square(0, { fill: foreground, opacity: 0.24 })];
    case 'empty':
      return [floor];
    case 'target':
      return [floor, ring];
    case 'box':
      return [floor, square(4, { fill: box, 'fill-opacity': 0.35, stroke: box, 'stroke-width': 2 })];
    case 'box_on_target':
      return [
        floor,
        square(4, { fill: solved, stroke: solved, 'stroke-width': 2 }),
        path('M6.5 10.5l2.5 2.5 4.5-5.5', { fill: 'none', stroke: background, 'stroke-width': 2 }),
      ];
    case 'player':
      return [floor, person];
    case 'player_on_target':
      return [floor, circle(8, { fill: 'none', stroke: target, 'stroke-width': 2 }), small];
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

const square = (inset: number, attributes: Shape['attributes']): Shape => ({
  tag: 'rect',
  attributes: { x: inset, y: inset, width: unit - 2 * inset, height: unit - 2 * inset, ...attributes },
});

const path = (d: string, attributes: Shape['attributes']): Shape => ({ tag: 'path', attributes: { d, ...attributes } });

const frame = ({ foreground }: BoardColours): Shape =>
  square(0.5, { class: 'changed', fill: 'none', stroke: foreground, 'stroke-width': 1.5, 'stroke-dasharray': '3 2' });
