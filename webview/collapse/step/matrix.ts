// The cross-scoring matrix of one diagnosis: one row per reasoning text, one column per prompt. The own prompt of a
// reasoning text is the prompt for which it was sampled. Rows are sorted by the column of their own prompt, so that the
// cells of own prompts form a diagonal. A cell is the log-prob of the reasoning under the column's prompt minus its
// log-prob under its own prompt.
import { maximum } from '../../../extension/common/lists';
import type { CollapseFamily } from '../../../extension/run-data/diagnostics';
import { formatNumber, formatSigned } from '../../shared/format';
import { differingParts, type PromptParts } from './prompt-diff';

export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** The matrix of a family, prepared for drawing. */
export interface Matrix {
  /** For each drawn row, the index of its reasoning text in the family's `samples`. */
  order: number[];
  /**
   * The cells, by drawn row and column: the reasoning's log-prob per token under the column's prompt, minus its
   * log-prob per token under its own prompt.
   */
  against: number[][];
  /** For each drawn row, the column of its own prompt; `best` is the column with the highest log-prob. */
  own: number[];
  best: number[];
  /** Absolute value at each end of the colour scale. */
  scale: number;
}

/**
 * Sorts the rows by the column of their own prompt. Subtracts from each value of a row the row's value under its own
 * prompt.
 */
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
  // The scale is the 95th percentile, because a few outliers would make all other cells pale.
  const scale = sizes[Math.floor(0.95 * (sizes.length - 1))] || 1;
  return { order, against, own, best, scale };
}

/**
 * A family with its matrix. Each prompt of the family is split into the lines that all prompts share and the lines in
 * which prompts differ.
 */
export interface ScoredFamily {
  readonly family: CollapseFamily;
  readonly matrix: Matrix;
  readonly prompts: readonly PromptParts[];
}

export const scoredFamily = (family: CollapseFamily): ScoredFamily => ({
  family,
  matrix: matrixOf(family),
  prompts: differingParts(family.prompts.map(({ text }) => text)),
});

/** Returns the initially selected cell: the first row in the column of its own prompt. */
export const firstCell = ({ matrix }: ScoredFamily): Cell => ({ row: 0, column: matrix.own[0] ?? 0 });

/** Returns the cell of the matrix nearest to the given position. The position may lie outside the matrix. */
export const cellWithin = ({ family, matrix }: ScoredFamily, { row, column }: Cell): Cell => ({
  row: Math.max(0, Math.min(matrix.order.length - 1, row)),
  column: Math.max(0, Math.min(family.prompts.length - 1, column)),
});

/** Returns the text of the matrix for screen readers. */
export function describeMatrix({ family, matrix }: ScoredFamily): string {
  const { samples, prompts, signatures } = family;
  const found = matrix.best.filter((column, row) => signatures[column] === signatures[matrix.own[row]]).length;
  return `Matrix of ${samples.length} reasoning texts by ${prompts.length} prompts; ${found} reasoning texts are most likely under their own prompt. Arrow keys move the selection, Home selects the text’s own prompt, Enter opens the episode.`;
}

/** Returns the text of a cell: its value, its rank in the row, and the episode and turn of the reasoning. */
export function describeCell({ family, matrix }: ScoredFamily, { row, column }: Cell): string {
  const { samples, prompts, signatures, lengths, log_probs_per_token: values } = family;
  const i = matrix.order[row];
  const own = matrix.own[row];
  const value = values[i][column];
  const rank = values[i].filter(other => other > value).length + 1;
  const same = signatures[column] === signatures[own] ? ' (both prompts have the same text)' : '';
  const compared =
    column === own
      ? 'under its own prompt'
      : `${formatSigned(matrix.against[row][column])} relative to its own prompt${same}`;
  return `Row ${row + 1}, column ${column + 1}: log-prob ${formatNumber(value)} per token, ${compared}; rank ${rank} of ${prompts.length}. ${samples[i].episode}, turn ${samples[i].turn}, ${lengths[i]} tokens.`;
}
