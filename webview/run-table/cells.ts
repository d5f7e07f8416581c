// The values of the run table as the page shows them: fields of a run's summary, heads of columns, and formatted cells.
// Pure functions.
import type { RunSummary } from '../../extension/protocol/page-state';
import { meaningOf } from '../../extension/run-data/metric-meanings';
import { progressOf } from '../../extension/run-data/run-progress';
import { bestOf, type Cell, type RunColumn, type TableField } from '../../extension/run-data/table-columns';
import { unitOf } from '../../extension/run-data/charts/catalogue';
import { formatNumber, formatPercent, formatValue } from '../shared/format';
import { displayStatus } from '../shared/run-status';

/** Returns a field of a run. */
export function fieldCell(run: RunSummary, field: TableField): Cell {
  switch (field) {
    case 'name':
      return run.name;
    case 'state':
      return displayStatus(run);
    case 'progress':
      return progressOf(run.status).done;
    case 'success':
      return run.status.success;
    case 'reward':
      return run.status.reward;
    case 'tags':
      return run.tags ? run.tags.join(', ') : null;
    case 'notes':
      return run.notes ?? null;
    case 'created':
      return run.created;
    case 'configuration':
      return run.config_name;
    case 'trainer':
      return run.trainer?.name ?? null;
    case 'id':
      return run.id;
  }
}

/** Returns the text of a run in which words of a filter are searched for. */
export const textsOf = ({ name, id, config_name, tags = [], notes = '' }: RunSummary): string =>
  [name, id, config_name, ...tags.map(tag => `#${tag}`), notes].join('\n');

export interface ColumnHead {
  title: string;
  /** What distinguishes the column from others with the same title; empty if nothing does. */
  detail: string;
  hint: string;
  /** Width in pixels. */
  width: number;
}

const fieldHeads: Readonly<Record<TableField, ColumnHead>> = {
  name: { title: 'Run', detail: '', hint: 'Name of the run', width: 220 },
  state: { title: 'State', detail: '', hint: 'State of the run', width: 104 },
  progress: { title: 'Progress', detail: '', hint: 'Finished steps or episodes, and their total number', width: 92 },
  success: { title: 'Success', detail: '', hint: 'Newest success rate, of the validation if there was one', width: 84 },
  reward: { title: 'Return', detail: '', hint: 'Mean return of the newest step', width: 76 },
  tags: { title: 'Tags', detail: '', hint: 'Tags of the run. Click a cell to edit it', width: 160 },
  notes: { title: 'Notes', detail: '', hint: 'First line of the notes. Click a cell to edit the notes', width: 240 },
  created: { title: 'Started', detail: '', hint: 'When the run was created', width: 180 },
  configuration: { title: 'Configuration', detail: '', hint: 'Name of the configuration', width: 128 },
  trainer: { title: 'Trainer', detail: '', hint: 'The other trainer that trains the run', width: 128 },
  id: { title: 'Id', detail: '', hint: 'Name of the run folder', width: 220 },
};

/** Returns the head of a column. */
export function headOf(column: RunColumn, meanings: Readonly<Record<string, string>>): ColumnHead {
  if (column.kind === 'field') return fieldHeads[column.field];
  const { key } = column;
  const [separator, kind] = column.kind === 'config' ? ['.', 'configuration key'] : ['/', atText(column)];
  const at = key.lastIndexOf(separator);
  const meaning = column.kind === 'metric' ? meaningOf(meanings, key) : undefined;
  const where = key.slice(0, Math.max(0, at));
  return {
    title: key.slice(at + 1).replaceAll('_', ' '),
    detail: column.kind === 'config' ? where : [kind, where].filter(Boolean).join(' · '),
    hint: [`${key} (${kind})`, meaning].filter(Boolean).join('\n'),
    width: 136,
  };
}

function atText({ key, at }: RunColumn & { kind: 'metric' }): string {
  if (typeof at === 'number') return `step ${at}`;
  return at === 'last' ? 'last' : bestOf(key) === 'highest' ? 'best' : 'best (lowest)';
}

/** Whether a column contains numbers, which are aligned to the right. */
export const isNumeric = (column: RunColumn): boolean =>
  column.kind === 'metric' || (column.kind === 'field' && ['progress', 'success', 'reward'].includes(column.field));

/** Formats a value for display; a dash if the run has none. */
export function formatCell(cell: Cell, column: RunColumn): string {
  if (cell === null) return '–';
  if (column.kind === 'metric') return typeof cell === 'number' ? formatValue(cell, unitOf(column.key)) : cell;
  if (column.kind === 'config') return String(cell);
  if (column.field === 'created') return startTime(String(cell));
  if (typeof cell === 'string') return cell;
  return column.field === 'success' ? formatPercent(cell) : formatNumber(cell);
}

function startTime(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime())
    ? iso
    : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}
