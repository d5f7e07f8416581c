// Exports metrics as comma-separated values (RFC 4180).
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Export } from '../../../protocol/dashboard-page';
import type { ColumnTable } from './column-table';

/** Returns rows of the table as CSV, with full precision and empty cells where a line lacks the key. */
export async function csvOf(
  table: ColumnTable | undefined,
  { keys, from, to }: Pick<Extract<Export, { kind: 'csv' }>, 'keys' | 'from' | 'to'>,
): Promise<Uint8Array> {
  const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const parts = [`${['step', ...keys].map(quoted).join(',')}\n`];
  const columns = ['step', ...keys].map(key => table?.column(key) ?? new Float64Array(0));
  for (let row = from; row < Math.min(to, columns[0].length); row++) {
    const cells = columns.map(column => (Number.isNaN(column[row]) ? '' : String(column[row])));
    if (keys.length === 0 || cells.some((cell, i) => i > 0 && cell !== '')) parts.push(`${cells.join(',')}\n`);
    if (row % 500 === 499) await yieldToEventLoop();
  }
  return Buffer.from(parts.join(''));
}
