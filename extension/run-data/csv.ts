// Comma-separated values (RFC 4180) with lines that end in a line feed. Numbers have full precision; a missing value is
// an empty cell.
import type { Cell } from './table-columns';

/** Returns one line, with its line feed. */
export const csvLine = (cells: readonly Cell[]): string =>
  `${cells
    .map(cell => {
      const text = cell === null ? '' : String(cell);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    })
    .join(',')}\n`;
