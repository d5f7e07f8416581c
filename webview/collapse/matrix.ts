// The cross-scoring matrix of one diagnosis as a heat map: one row per reasoning text, one column per prompt, with rows
// sorted by their own prompt, so that own prompts form a diagonal. The colour is the log-prob of the reasoning under a
// prompt relative to its own prompt (orange: more likely under the other prompt). One cell is selected, by pointer or
// arrow keys; its two texts are shown next to the matrix. Screen readers read the text of the cell and the table
// instead of the canvas.
import type { CollapseFamily } from '../../extension/run-data/diagnostics';
import { maximum } from '../../extension/common/lists';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { formatNumber, formatSigned } from '../shared/format';
import { hue, withAlpha } from '../shared/palette';
import type { Theme } from '../shared/theme';
import { button } from '../shared/toolkit';
import { differingParts, type PromptParts } from './prompt-diff';

export interface MatrixView {
  element: HTMLElement;
  draw(family: CollapseFamily, theme: Theme): void;
}

interface Cell {
  row: number;
  column: number;
}

/** A family, prepared for drawing. */
export interface Matrix {
  /** Row of the family for each row of the picture. */
  order: number[];
  /** Log-prob per token under each prompt minus that under the own prompt, by picture row. */
  against: number[][];
  /** The own column and the most likely column of each picture row. */
  own: number[];
  best: number[];
  /** Largest absolute value of the colour scale. */
  scale: number;
}

/** Sorts the rows by their prompts and subtracts the own prompt's value from each row. */
export function matrixOf({ log_probs_per_token: values, column }: CollapseFamily): Matrix {
  const order = values.map((_, i) => i).sort((a, b) => column[a] - column[b] || a - b);
  const own = order.map(i => column[i]);
  const against = order.map((i, row) => values[i].map(value => value - values[i][own[row]]));
  const best = against.map(row => row.indexOf(maximum(row)));
  const sizes = against
    .flat()
    .map(Math.abs)
    .filter(Number.isFinite)
    .sort((a, b) => a - b);
  // The scale is the 95th percentile, so that a few outliers do not wash out the other cells.
  const scale = sizes[Math.floor(0.95 * (sizes.length - 1))] || 1;
  return { order, against, own, best, scale };
}

export function matrixView(open: (episode: string) => void): MatrixView {
  const canvas = h('canvas', { tabindex: 0, role: 'img', 'aria-describedby': 'cell-words' });
  const field = h('div', { class: 'matrix-field' }, canvas);
  const caption = h('p', { id: 'cell-words', class: 'cell-words', 'aria-live': 'polite' });
  const reasoning = h('pre', { class: 'cell-text' });
  const prompt = h('pre', { class: 'cell-text' });
  const details = h('details', { class: 'whole-prompt' }, h('summary', {}, 'Full prompt'));
  const openButton = button({ label: 'Open its episode', title: 'Enter', onClick: () => openCell() });
  const table = h('details', { class: 'matrix-table' }, h('summary', {}, 'As a table'));
  const legend = h('p', { class: 'muted legend' });
  const side = h(
    'div',
    { class: 'cell-side' },
    caption,
    h('h4', {}, 'Reasoning'),
    reasoning,
    h('h4', {}, 'Prompt, where it differs from the others'),
    prompt,
    details,
    openButton,
  );
  const element = h('div', { class: 'matrix' }, h('div', {}, field, legend), side, table);

  let family: CollapseFamily | null = null;
  let matrix: Matrix | null = null;
  let parts: PromptParts[] = [];
  let theme: Theme | null = null;
  let cell: Cell = { row: 0, column: 0 };

  const openCell = () => {
    const sample = family && matrix ? family.samples[matrix.order[cell.row]] : undefined;
    if (sample) open(sample.episode);
  };

  function look(next: Cell): void {
    if (!family || !matrix || family.samples.length === 0) return;
    cell = {
      row: Math.max(0, Math.min(matrix.order.length - 1, next.row)),
      column: Math.max(0, Math.min(family.prompts.length - 1, next.column)),
    };
    const { row, column } = cell;
    const i = matrix.order[row];
    const sample = family.samples[i];
    const own = matrix.own[row];
    const value = family.log_probs_per_token[i][column];
    const rank = family.log_probs_per_token[i].filter(other => other > value).length + 1;
    const difference = matrix.against[row][column];
    const compared =
      column === own
        ? 'its own prompt'
        : `${formatSigned(difference)} relative to its own prompt${family.signatures[column] === family.signatures[own] ? ', which is the same text' : ''}`;
    setText(
      caption,
      `Row ${row + 1}, column ${column + 1}: log-prob ${formatNumber(value)} per token, ${compared}; rank ${rank} of ${family.prompts.length}. ${sample.episode}, turn ${sample.turn}, ${family.lengths[i]} tokens.`,
    );
    setText(reasoning, sample.text);
    setText(prompt, parts[column].own);
    details.hidden = parts[column].before === '' && parts[column].after === '';
    replaceChildren(
      details,
      h('summary', {}, 'Full prompt'),
      h('pre', { class: 'cell-text' }, family.prompts[column].text),
    );
    paint();
  }

  function paint(): void {
    if (!family || !matrix || !theme) return;
    const { width, height } = canvas.getBoundingClientRect();
    const context = canvas.getContext('2d');
    if (!context || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.scale(ratio, ratio);
    paintCells(context, { width, height }, matrix, cell, theme);
  }
  new ResizeObserver(paint).observe(field);

  const cellAt = (event: PointerEvent | MouseEvent): Cell => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const share = (at: number, size: number, count: number) => Math.floor((at / size) * count);
    return {
      row: share(event.clientY - top, height, matrix?.order.length ?? 0),
      column: share(event.clientX - left, width, family?.prompts.length ?? 0),
    };
  };
  canvas.addEventListener('pointermove', event => {
    const next = cellAt(event);
    if (next.row !== cell.row || next.column !== cell.column) look(next);
  });
  canvas.addEventListener('click', event => {
    look(cellAt(event));
    openCell();
  });
  canvas.addEventListener('keydown', event => {
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const move = moves[event.key] as [number, number] | undefined;
    if (move) look({ row: cell.row + move[0], column: cell.column + move[1] });
    else if (event.key === 'Home' && matrix) look({ row: cell.row, column: matrix.own[cell.row] });
    else if (event.key === 'Enter') openCell();
    else return;
    event.preventDefault();
  });
  table.addEventListener('toggle', () => {
    if (table.open && family && matrix)
      replaceChildren(table, h('summary', {}, 'As a table'), rowsTable(family, matrix, open));
  });

  return {
    element,
    draw(next, nextTheme) {
      const isNew = next !== family;
      [family, theme] = [next, nextTheme];
      if (!isNew) return paint();
      matrix = matrixOf(next);
      parts = differingParts(next.prompts.map(({ text }) => text));
      const found = matrix.best.filter(
        (column, row) => next.signatures[column] === next.signatures[matrix!.own[row]],
      ).length;
      setAttribute(
        canvas,
        'aria-label',
        `Matrix of ${next.samples.length} reasoning texts by ${next.prompts.length} prompts; ${found} reasoning texts are most likely under their own prompt. Arrow keys move the selection, Home selects the own prompt, Enter opens the episode.`,
      );
      const rows = next.samples.length;
      field.style.aspectRatio = String(Math.max(0.75, Math.min(2.2, next.prompts.length / rows)));
      setText(
        legend,
        `${rows} reasoning texts (rows) under ${next.prompts.length} prompts (columns). Outlined: the own prompt. Blue: less likely than under the own prompt; orange: more likely.`,
      );
      table.open = false;
      look({ row: 0, column: matrix.own[0] ?? 0 });
    },
  };
}

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
  // Adjacent rows with the same own prompt share one outline.
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

/**
 * One row per reasoning text: the text, its log-prob under its own prompt, and the prompt under which it is most
 * likely.
 */
function rowsTable(
  family: CollapseFamily,
  { order, own, best, against }: Matrix,
  open: (episode: string) => void,
): HTMLElement {
  const rows = order.map((i, row) => {
    const sample = family.samples[i];
    const link = h('button', { class: 'plain link', type: 'button' }, sample.episode);
    link.addEventListener('click', () => open(sample.episode));
    const same = family.signatures[best[row]] === family.signatures[own[row]];
    return h(
      'tr',
      {},
      h('th', { scope: 'row' }, link),
      h('td', { class: 'number' }, String(own[row] + 1)),
      h('td', { class: 'number' }, formatNumber(family.log_probs_per_token[i][own[row]])),
      h('td', { class: 'number' }, same ? 'its own' : `${best[row] + 1} (${formatSigned(against[row][best[row]])})`),
      h('td', { class: 'text' }, sample.text),
    );
  });
  const head = ['Episode', 'Own prompt', 'Log-prob there', 'Most likely prompt', 'Reasoning'];
  return h(
    'div',
    { class: 'table-scroll', tabindex: 0 },
    h(
      'table',
      {},
      h('caption', { class: 'visually-hidden' }, 'Reasoning texts of the matrix'),
      h('thead', {}, h('tr', {}, ...head.map(text => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, ...rows),
    ),
  );
}
