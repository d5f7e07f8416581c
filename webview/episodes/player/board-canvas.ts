// Draws a board on a canvas: the same shapes as the SVG drawings of extension/common/board-picture.ts.
import type { BoardDrawing, Shape } from '../../../extension/common/board-picture';

type Context = CanvasRenderingContext2D;

/** Draws the board with its upper left corner at (`x`, `y`), scaled by `scale`. */
export function paintBoard(context: Context, { cells }: BoardDrawing, x: number, y: number, scale: number): void {
  context.save();
  context.translate(x, y);
  context.scale(scale, scale);
  for (const cell of cells) {
    context.save();
    context.translate(cell.x, cell.y);
    for (const shape of cell.shapes) paintShape(context, shape);
    context.restore();
  }
  context.restore();
}

function paintShape(context: Context, { tag, attributes }: Shape): void {
  const number = (name: string, otherwise = 0): number => Number(attributes[name] ?? otherwise);
  const outline = new Path2D(tag === 'path' ? String(attributes.d) : undefined);
  if (tag === 'rect') outline.rect(number('x'), number('y'), number('width'), number('height'));
  if (tag === 'circle') outline.arc(number('cx'), number('cy'), number('r'), 0, 2 * Math.PI);
  const { fill, stroke, 'stroke-dasharray': dashes = '' } = attributes;
  const opacity = number('opacity', 1);
  if (fill !== undefined && fill !== 'none') {
    context.globalAlpha = opacity * number('fill-opacity', 1);
    context.fillStyle = String(fill);
    context.fill(outline);
  }
  if (stroke !== undefined) {
    context.globalAlpha = opacity;
    context.strokeStyle = String(stroke);
    context.lineWidth = number('stroke-width', 1);
    context.setLineDash(dashes === '' ? [] : String(dashes).split(' ').map(Number));
    context.stroke(outline);
  }
  context.globalAlpha = 1;
}
